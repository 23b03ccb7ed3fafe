"""Code points of text that is known to be UTF-8 (`text_chunks` checks it)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators._kernels.compile import inlined
from headrace.operators._kernels.memory import load8


@inlined
def decode(text: Any, at: Any, lead: Any) -> Any:
    """(code point, length in bytes) of the sequence at `at`, whose first byte is `lead` >= 0x80."""
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (load8(text, at + 1) & 0x3F), 2
    if lead < 0xF0:
        return (
            ((lead & 0x0F) << 12) | (np.int64(load8(text, at + 1) & 0x3F) << 6) | (load8(text, at + 2) & 0x3F),
            3,
        )
    return (
        ((lead & 0x07) << 18)
        | (np.int64(load8(text, at + 1) & 0x3F) << 12)
        | (np.int64(load8(text, at + 2) & 0x3F) << 6)
        | (load8(text, at + 3) & 0x3F)
    ), 4
