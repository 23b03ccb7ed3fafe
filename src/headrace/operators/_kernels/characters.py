"""Character classes as this Python's own string methods see them: one byte of flags for each code point.

The rules are stated with `str.split`, `str.isalpha` and `str.splitlines`, so the table is made from them and follows
the interpreter's Unicode version.  numpy's string functions call the same predicates, in milliseconds.
A kernel takes the table as an argument: a global would be frozen into its code.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

SPACE, ALPHA, LINE_BREAK, PUNCTUATION = 1, 2, 4, 8

_LINE_BREAKS = (0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029)  # str.splitlines

# The characters that datatrove calls punctuation: C0 and C1 controls except LF and CR, and these.
_MARKS = (
    "!\"#%&'()*+,-./:;<=>?@[\\]^_`{|}~¡«´»–—‘’“”„…›►、。《》「」【】！（），．：；？～、"
)


@cache
def character_classes() -> npt.NDArray[np.uint8]:
    """uint8[0x110000] of SPACE | ALPHA | LINE_BREAK | PUNCTUATION."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    classes = np.zeros(0x110000, np.uint8)
    classes[np.strings.isspace(characters)] |= SPACE
    classes[np.strings.isalpha(characters)] |= ALPHA
    classes[list(_LINE_BREAKS)] |= LINE_BREAK
    return classes
