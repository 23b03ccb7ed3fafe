"""A short list of words that a kernel looks words up in, such as stop words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.compile import inlined, inner
from headrace.operators._kernels.hashing import few_bytes, same_bytes
from headrace.operators._kernels.memory import Bytes, load8, load64


class WordList(NamedTuple):
    """Most words of a text fail at `hints`, one byte load; the others meet the list one by one, exactly."""

    hints: Bytes  # first byte -> bit min(size, 8) - 1 for each size that occurs
    sizes: npt.NDArray[np.int64]
    heads: npt.NDArray[np.uint64]  # up to 8 bytes, little-endian
    blob: Bytes  # all words, one behind the other
    starts: npt.NDArray[np.int64]


def word_list(words: Sequence[str]) -> WordList:
    """Make the list; words are distinct and not empty."""
    encoded = [word.encode() for word in words]
    hints = np.zeros(256, np.uint8)
    for word in encoded:
        hints[word[0]] |= 1 << (min(len(word), 8) - 1)
    return WordList(
        hints,
        np.array([len(word) for word in encoded], np.int64),
        np.array([int.from_bytes(word[:8], "little") for word in encoded], np.uint64),
        np.array(list(b"".join(encoded)), np.uint8),
        np.cumsum([0, *(len(word) for word in encoded)], dtype=np.int64),
    )


@inlined
def may_be_listed(hints: Any, text: Any, start: Any, size: Any) -> Any:
    """Whether the word text[start:start + size] is worth a call of `find_word`."""
    return load8(hints, np.int64(load8(text, start))) & (1 << (min(size, 8) - 1))


@inner
def find_word(
    sizes: npt.NDArray[np.int64],
    heads: npt.NDArray[np.uint64],
    blob: Bytes,
    starts: npt.NDArray[np.int64],
    text: Bytes,
    start: int,
    size: int,
) -> int:
    """Number of the word text[start:start + size] in the list, or -1.

    Takes the list's arrays one by one: taken out of the tuple for each word, they would be counted as references.
    """
    head = load64(text, start) if size >= 8 else few_bytes(text, start, size)
    for k in range(len(sizes)):
        if sizes[k] == size and heads[k] == head:
            if size <= 8 or same_bytes(text, start, blob, starts[k], size):
                return k
    return -1
