"""Character classes as this Python's own string methods see them: one byte of flags for each code point.

The rules are stated with `str.split`, `str.isalpha` and `str.splitlines`, so the table is made from them and follows
the interpreter's Unicode version.  numpy's string functions call the same predicates, in milliseconds.
A kernel takes the table as an argument: a global would be frozen into its code.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

# WORDLIKE is what is not punctuation; SYMBOL marks `#` and `.`, whose words are looked at again.
SPACE, ALPHA, WORDLIKE, LINE_BREAK, SYMBOL = 1, 2, 4, 8, 16

_LINE_BREAKS = (0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029)  # those of str.splitlines

# The characters that datatrove 0.9 calls punctuation: ASCII's, controls except tab and LF, and a choice of others
# (U+FF11, a digit, is one of them).
_PUNCTUATION_RANGES = ((0x00, 0x09), (0x0B, 0x20), (0x21, 0x30), (0x3A, 0x41), (0x5B, 0x61), (0x7B, 0xA0))
# fmt: off
_MORE_PUNCTUATION = (
    0xAB, 0xB4, 0xBB, 0x2013, 0x2014, 0x2019, 0x201C, 0x201D, 0x201E, 0x2026, 0x2236, 0x2501, 0x25BA,
    0x3001, 0x3002, 0x3008, 0x3009, 0x300A, 0x300B, 0x300C, 0x300D, 0x3010, 0x3011,
    0xFF01, 0xFF05, 0xFF08, 0xFF09, 0xFF0C, 0xFF0E, 0xFF11, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF5E,
)
# fmt: on


@cache
def character_classes() -> npt.NDArray[np.uint8]:
    """uint8[0x110000] of SPACE | ALPHA | WORDLIKE | LINE_BREAK | SYMBOL."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    classes = np.full(0x110000, WORDLIKE, np.uint8)
    for low, high in _PUNCTUATION_RANGES:
        classes[low:high] = 0
    classes[list(_MORE_PUNCTUATION)] = 0
    classes[np.strings.isspace(characters)] |= SPACE
    classes[np.strings.isalpha(characters)] |= ALPHA
    classes[list(_LINE_BREAKS)] |= LINE_BREAK
    classes[[ord("#"), ord(".")]] |= SYMBOL
    return classes
