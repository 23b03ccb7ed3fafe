"""Which pieces of a long text stand for it: windows spread evenly from its start to its end."""

from __future__ import annotations

from typing import Any

from headrace.operators._kernels.compile import inner
from headrace.operators._kernels.memory import Bytes, load8

_WORD_SKIP_BYTES = 32  # a longer word is cut, so that text without spaces keeps its windows


@inner
def window(text: Bytes, start: int, end: int, number: int, num_windows: int, window_bytes: int) -> Any:
    """(start, end) of window `number` of text[start:end], which is longer than all windows together.

    Both ends are at character boundaries; a window starts at a word where one starts near.
    """
    first = start
    if num_windows > 1:
        first = start + (end - start - window_bytes) * number // (num_windows - 1)
    last = first + window_bytes
    if last < end:
        while last > first and load8(text, last) & 0xC0 == 0x80:
            last -= 1
    if first > start:
        skipped = 0
        while first < last and skipped < _WORD_SKIP_BYTES and load8(text, first - 1) > 32:
            first += 1
            skipped += 1
        while first < last and load8(text, first) & 0xC0 == 0x80:
            first += 1
    return first, last
