"""Ids of rows: the input's own key where it has one, else coordinates and content; never a position in a batch.

1. A coordinate id is 32 hex digits over path, offset and text: the same in any part, batch or run.
2. A key that occurred before in the part gets `~` and 8 digits of its text; where that is taken, or the text is the
   same too, of coordinates and text.  So ids are unique within a part, and depend on nothing but its rows.
3. What was seen is kept as sorted 64-bit hashes, 16 bytes a row: a file of a hundred million rows fits in memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh3_64_intdigest, xxh3_128

Hashes = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]


class Seen:
    """A growing set of 64-bit hashes, as sorted runs whose lengths at least halve from one to the next."""

    def __init__(self) -> None:
        self._runs: list[Hashes] = []

    def add(self, hashes: Hashes) -> None:
        """Take them in; order and repeats don't matter."""
        run = np.sort(hashes)
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")  # two sorted runs: one merge
        self._runs.append(run)

    def contains(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of them were added before."""
        found = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            if len(run):
                at = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
                found |= run[at] == hashes
        return found


class Identity:
    """The ids of one part's rows, in order."""

    def __init__(self, path: str) -> None:
        self._prefix = path.encode() + b"\0"
        self._keys, self._pairs = Seen(), Seen()
        self._renamed = 0

    def of_coordinates(self, offsets: Offsets, texts: pa.Array | None) -> pa.Array:
        """Coordinate ids of rows at these offsets."""
        pairs = zip(offsets.tolist(), text_views(texts, len(offsets)), strict=True)
        return pa.array([self._coordinate(offset, text) for offset, text in pairs], pa.string())

    def of_keys(self, keys: pa.Array, offsets: Offsets, texts: pa.Array | None) -> pa.Array:
        """The rows' own keys (strings), made unique; a null or empty key gives a coordinate id."""
        views, places, count = text_views(texts, len(offsets)), offsets.tolist(), len(offsets)
        ids = keys.cast(pa.binary()).to_pylist()
        changed = False
        if keys.null_count or b"" in ids:
            changed = True
            ids = [key or self._coordinate(places[row], views[row]).encode() for row, key in enumerate(ids)]
        hashes = np.fromiter((xxh3_64_intdigest(key) for key in ids), np.uint64, count)
        salted = (xxh3_64_intdigest(text, salt) for text, salt in zip(views, hashes.tolist(), strict=True))
        pairs = np.fromiter(salted, np.uint64, count)  # of key and text
        repeats = self._repeats(hashes)
        if repeats.any():
            changed = True
            self._renamed += int(repeats.sum())
            is_same, taken = self._same(pairs), set(hashes.tolist())
            for row in np.flatnonzero(repeats).tolist():
                ids[row] = self._suffixed(ids[row], is_same[row], places[row], views[row], taken)
            self._keys.add(np.fromiter(taken, np.uint64, len(taken)))
        else:
            self._keys.add(hashes)
        self._pairs.add(pairs)
        return pa.array(ids, pa.binary()).cast(pa.string()) if changed else keys.cast(pa.string())

    def take_renamed(self) -> int:
        """How many keys got a suffix since this was last asked."""
        renamed, self._renamed = self._renamed, 0
        return renamed

    def _repeats(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Rows whose key was there before, in this batch or an earlier one."""
        repeats = np.ones(len(hashes), np.bool_)
        repeats[np.unique(hashes, return_index=True)[1]] = False
        return repeats | self._keys.contains(hashes)

    def _same(self, pairs: Hashes) -> list[bool]:
        """Rows whose key was there before with this very text."""
        later = np.ones(len(pairs), np.bool_)
        later[np.unique(pairs, return_index=True)[1]] = False
        return [bool(same) for same in later | self._pairs.contains(pairs)]

    def _suffixed(self, key: bytes, is_same: bool, offset: int, text: Any, taken: set[int]) -> bytes:
        content, coordinate = xxh3_128(text).hexdigest(), self._coordinate(offset, text)
        suffixes = [coordinate[:8] if is_same else content[:8], coordinate[:8], coordinate]
        choices = [key + b"~" + suffix.encode() for suffix in suffixes]
        marks = [xxh3_64_intdigest(choice) for choice in choices]
        used = self._keys.contains(np.array(marks, np.uint64)).tolist()
        free = (at for at, mark in enumerate(marks) if mark not in taken and not used[at])
        at = next(free, len(choices) - 1)
        taken.add(marks[at])
        return choices[at]

    def _coordinate(self, offset: int, text: Any) -> str:
        state = xxh3_128(self._prefix + offset.to_bytes(8, "little"))
        state.update(text)
        return str(state.hexdigest())


def text_views(texts: pa.Array | None, count: int) -> list[Any]:
    """The bytes of each text, without a copy.  `texts` is large_string; None stands for no text at all."""
    if texts is None or count == 0:
        return [b""] * count
    _, offsets, values = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64, count + 1, texts.offset * 8).tolist()
    view = memoryview(values if values is not None else b"")
    return [view[start:stop] for start, stop in pairwise(bounds)]
