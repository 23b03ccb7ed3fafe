"""The character table of `normalize_rows`, from fixed Unicode sets and Arrow's own normaliser.

Which code points NFC may touch is asked of the function that will normalise them, so the two cannot disagree about
a Unicode version, and the table needs neither Python's `unicodedata` nor a file.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NUM_CODE_POINTS = 0x110000

LINE_ENDS = (0x0A, 0x0D, 0x85, 0x2028, 0x2029)
# Unicode's space separators (category Zs), and the two controls that act like blanks; a tab stays a tab.
BLANKS = (0x0B, 0x0C, 0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
BYTE_ORDER_MARK = 0xFEFF

# Everything else is unassigned, private, or stands for itself in NFC and follows nothing: CJK, Hangul syllables.
_NFC_RANGES = ((0x80, 0x3400), (0xA480, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0x13460), (0x16000, 0x17000))
_MORE_NFC_RANGES = ((0x1B000, 0x20000), (0x2F800, 0x2FA20), (0xE0000, 0xE0200))


def controls() -> list[int]:
    """Category Cc without white space, which has its own switches, and the byte order mark."""
    spared = {0x09, *LINE_ENDS, *BLANKS}
    return [c for c in (*range(0x20), *range(0x7F, 0xA0), BYTE_ORDER_MARK) if c not in spared]


@cache
def nfc_candidates() -> npt.NDArray[np.uint32]:
    """Code points whose presence may make NFC change a text.

    They change by themselves, or carry a combining class (so they may be put in order), or stand second in
    something that composes.
    """
    points = np.concatenate([np.arange(low, high, dtype=np.uint32) for low, high in (*_NFC_RANGES, *_MORE_NFC_RANGES)])
    single = pa.array(points.view("<U1"))
    decomposed = pc.utf8_normalize(single, form="NFD")
    is_whole = _equal(decomposed, single)
    # U+0334 has the lowest combining class (1), U+0345 the highest (240): a mark of any class swaps with one of them.
    # A character that decomposes is no such mark; what follows it may be, and is looked at by itself.
    keeps_place = np.ones(len(points), np.bool_)
    for before, after in (("", "\u0334"), ("\u0345", "")):
        pair = pc.binary_join_element_wise(before, single, after, "")
        keeps_place &= _equal(pc.utf8_normalize(pair, form="NFD"), pair)
    changes = ~_equal(pc.utf8_normalize(single, form="NFC"), single)
    second = {ord(c) for parts in decomposed.filter(pa.array(~is_whole)).to_pylist() for c in parts[1:]}
    second.update(range(0x1161, 0x1176), range(0x11A8, 0x11C3))  # Hangul vowels and finals
    return np.union1d(points[changes | (is_whole & ~keeps_place)], np.array(sorted(second), np.uint32))


def _equal(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return equal


def normalize_table(
    controls_dropped: bool, line_ends: bool, blanks: bool, nfc: bool, marks: tuple[int, int, int, int]
) -> npt.NDArray[np.uint8]:
    """uint8[0x110000]; `marks` are the kernel's (DROP, BLANK, NEWLINE, MAYBE_NFC)."""
    drop, blank, newline, maybe_nfc = marks
    table = np.zeros(NUM_CODE_POINTS, np.uint8)
    if controls_dropped:
        table[controls()] = drop
    if blanks:
        table[list(BLANKS)] = blank
    table[list(LINE_ENDS) if line_ends else 0x0A] = newline
    if nfc:
        table[nfc_candidates()] |= maybe_nfc
    return table
