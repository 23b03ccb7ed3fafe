"""One pass that drops controls, unifies line ends and blanks, and trims; it also finds the rows that need NFC."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.compile import kernel
from headrace.operators._kernels.memory import Bytes, load8, load64, store64
from headrace.operators._kernels.utf8 import decode

# What the character table says about a code point; 0 copies it.
DROP, BLANK, NEWLINE, MAYBE_NFC = 1, 2, 4, 8

_TAB, _LF, _CR, _SPACE = 9, 10, 13, 32
_HIGH_BITS = np.uint64(0x8080808080808080)
_SPACES = np.uint64(0x2020202020202020)
_ONES = np.uint64(0x0101010101010101)


@kernel
def normalize_rows(
    text: Bytes,
    offsets: npt.NDArray[np.int64],
    table: Bytes,
    trim_lines: Any,
    limit_newlines: Any,
    trim_text: Any,
    out: Bytes,
    out_offsets: npt.NDArray[np.int64],
    needs_nfc: npt.NDArray[np.bool_],
) -> None:
    """Write the normalised rows to `out`, which is as long as the rows are: no row grows here."""
    o = 0
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        i = offsets[row]
        end = offsets[row + 1]
        start = o
        flagged = False
        has_content = False  # something that trim_text must not cut stands before o
        while i < end:
            if i + 8 <= end:
                word = load64(text, i)
                if ((word - _SPACES) | (word + _ONES) | word) & _HIGH_BITS == 0:  # all within 0x20..0x7e
                    store64(out, o, word)
                    i += 8
                    o += 8
                    continue
            c = np.int64(load8(text, i))
            size = 1
            if c >= 128:
                c, size = decode(text, i, c)
            what = load8(table, c)
            if what & MAYBE_NFC:
                flagged = True
            if what & DROP:
                pass
            elif what & BLANK:
                out[o] = _SPACE
                o += 1
            elif what & NEWLINE:
                if trim_lines:
                    while o > start and (out[o - 1] == _SPACE or out[o - 1] == _TAB):
                        o -= 1
                if c == _CR and i + 1 < end and load8(text, i + 1) == _LF:
                    size = 2
                if trim_text and not has_content:
                    for j in range(start, o):
                        if not (out[j] == _SPACE or out[j] == _TAB or out[j] == _LF):
                            has_content = True
                            break
                if trim_text and not has_content:
                    o = start
                elif not (limit_newlines and o - start >= 2 and out[o - 1] == _LF and out[o - 2] == _LF):
                    out[o] = _LF
                    o += 1
            else:
                for j in range(size):
                    out[o + j] = load8(text, i + j)
                o += size
            i += size
        if trim_text:
            while o > start and (out[o - 1] == _SPACE or out[o - 1] == _TAB or out[o - 1] == _LF):
                o -= 1
        elif trim_lines:
            while o > start and (out[o - 1] == _SPACE or out[o - 1] == _TAB):
                o -= 1
        out_offsets[row + 1] = o
        needs_nfc[row] = flagged
