"""A small set of words that a kernel looks words up in, such as stop words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.compile import inner
from headrace.operators._kernels.hashing import mix, same_bytes, word_key
from headrace.operators._kernels.memory import Bytes


class WordSet(NamedTuple):
    """Open addressing: slot -> number of the word, or -1."""

    slots: npt.NDArray[np.int32]
    keys: npt.NDArray[np.uint64]
    blob: Bytes  # all words, one behind the other
    starts: npt.NDArray[np.int64]  # word k is blob[starts[k]:starts[k + 1]]
    longest: int  # bytes; longer words need no look


def word_set(words: Sequence[str]) -> WordSet:
    """Make the table; words are distinct and not empty."""
    encoded = [word.encode() for word in words]
    blob = np.frombuffer(b"".join(encoded), np.uint8).copy() if encoded else np.zeros(0, np.uint8)
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    num_slots = 1 << (4 * len(words) + 4).bit_length()
    table = WordSet(
        np.full(num_slots, -1, np.int32),
        np.zeros(len(words), np.uint64),
        blob,
        starts,
        max(map(len, encoded), default=0),
    )
    _fill(*table[:4])
    return table


@inner
def _fill(slots: npt.NDArray[np.int32], keys: npt.NDArray[np.uint64], blob: Bytes, starts: npt.NDArray[np.int64]) -> None:
    for k in range(len(keys)):
        keys[k] = word_key(blob, starts[k], starts[k + 1] - starts[k])
        at = np.int64(mix(keys[k])) & (len(slots) - 1)
        while slots[at] >= 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = k
