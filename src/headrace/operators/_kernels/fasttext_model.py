"""A quantised fastText classifier (`.ftz`), read into plain arrays.

Covers what language models are: hierarchical softmax, word n-grams of one, a pruned dictionary.  Product-quantised
matrices are expanded to float32 once (3.2 MB for 176 languages); the kernel then only adds rows.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.errors import DataError

_MAGIC, _VERSION = 793712314, 12
_HIERARCHICAL_SOFTMAX = 1
_END_OF_SENTENCE = b"</s>"  # a word that fastText sees at the end of each text
_LABEL_PREFIX = "__label__"
_CENTROIDS = 256

_Floats = npt.NDArray[np.float32]


class Network(NamedTuple):
    """What the kernel needs; see `fasttext_predict`."""

    inputs: _Floats  # [words + n-grams kept, dim]
    outputs: _Floats  # [labels - 1, dim], one a node of the label tree
    ngram_rows: npt.NDArray[np.int32]  # bucket -> row of inputs behind the words, or -1 where pruned
    min_chars: int
    max_chars: int
    word_slots: npt.NDArray[np.int32]  # hash table: word number or -1
    word_bytes: npt.NDArray[np.uint8]  # all words, one behind the other
    word_starts: npt.NDArray[np.int64]
    left: npt.NDArray[np.int32]  # children of each node of the label tree, -1 for a leaf
    right: npt.NDArray[np.int32]
    end_of_sentence: int  # its word number, or -1


class Model(NamedTuple):
    """The network, and the label of each leaf without fastText's prefix."""

    network: Network
    labels: list[str]


@lru_cache(maxsize=4)
def read_model(path: str, place: str) -> Model:
    """Read a model once per process.  Raises DataError where the file is not such a model."""
    try:
        content = Path(path).read_bytes()
        return _parse(_Cursor(content))
    except (OSError, struct.error, ValueError, IndexError) as error:
        raise DataError(
            place, f"{path}: {error}", "the model must be a quantised fastText classifier (.ftz)", "see `model`"
        ) from error


def fnv1a(word: bytes) -> int:
    """FastText's hash of a word; it extends the sign of each byte.

    >>> hex(fnv1a(b"a"))
    '0xe40c292c'
    """
    value = 2166136261
    for byte in word:
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value


class _Cursor:
    """Little-endian values, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def values(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def value(self, form: str) -> Any:
        return self.values(form)[0]

    def array(self, kind: type[np.generic], count: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self.content, kind, count, self.at).copy()
        self.at += found.nbytes
        return found

    def text(self) -> bytes:
        end = self.content.index(b"\0", self.at)
        found = self.content[self.at : end]
        self.at = end + 1
        return found


def _parse(cursor: _Cursor) -> Model:
    if cursor.values("ii") != (_MAGIC, _VERSION):
        raise ValueError("not a fastText model of format 12")
    *_, word_ngrams, loss, _kind, buckets, min_chars, max_chars, _rate = cursor.values("12i")
    cursor.value("d")
    num_entries, num_words, num_labels = cursor.values("iii")
    _num_tokens, num_kept = cursor.values("qq")
    entries = [(cursor.text(), *cursor.values("qb")) for _ in range(num_entries)]
    kept = cursor.array(np.int32, 2 * max(num_kept, 0)).reshape(-1, 2)
    if word_ngrams != 1 or loss != _HIERARCHICAL_SOFTMAX or num_kept < 0 or not cursor.value("?"):
        raise ValueError("only quantised models with word n-grams of 1, hierarchical softmax and a pruned dictionary")
    inputs = _quantised_matrix(cursor)
    outputs = _quantised_matrix(cursor) if cursor.value("?") else _matrix(cursor)
    if cursor.at != len(cursor.content):
        raise ValueError(f"{len(cursor.content) - cursor.at} bytes too many")
    words = [name for name, _, kind in entries if kind == 0]
    labels = [(name, count) for name, count, kind in entries if kind == 1]
    if len(words) != num_words or len(labels) != num_labels:
        raise ValueError("the dictionary contradicts its own counts")
    ngram_rows = np.full(buckets, -1, np.int32)
    ngram_rows[kept[:, 0]] = kept[:, 1]
    left, right = _label_tree([count for _, count in labels])
    network = Network(
        inputs,
        outputs,
        ngram_rows,
        min_chars,
        max_chars,
        _word_slots(words),
        np.frombuffer(b"".join(words), np.uint8).copy(),
        np.cumsum([0, *(len(word) for word in words)], dtype=np.int64),
        left,
        right,
        words.index(_END_OF_SENTENCE) if _END_OF_SENTENCE in words else -1,
    )
    return Model(network, [name.decode().removeprefix(_LABEL_PREFIX) for name, _ in labels])


def _matrix(cursor: _Cursor) -> _Floats:
    rows, dim = cursor.values("qq")
    return cursor.array(np.float32, rows * dim).reshape(rows, dim)


def _quantised_matrix(cursor: _Cursor) -> _Floats:
    """Product quantisation: each part of a row is the number of a centroid; norms are quantised apart."""
    has_norms = cursor.value("?")
    rows, dim = cursor.values("qq")
    codes = cursor.array(np.uint8, cursor.value("i"))
    parts, part_dim, last_dim, centroids = _quantiser(cursor)
    codes = codes.reshape(rows, parts).astype(np.int64)
    matrix = np.empty((rows, dim), np.float32)
    for part in range(parts):
        width = last_dim if part == parts - 1 else part_dim
        first = part * _CENTROIDS * part_dim + codes[:, part] * width
        for k in range(width):
            matrix[:, part * part_dim + k] = centroids[first + k]
    if has_norms:
        norm_codes = cursor.array(np.uint8, rows)
        *_, norms = _quantiser(cursor)
        matrix *= norms[norm_codes][:, None]
    return matrix


def _quantiser(cursor: _Cursor) -> tuple[int, int, int, _Floats]:
    dim, parts, part_dim, last_dim = cursor.values("iiii")
    return parts, part_dim, last_dim, cursor.array(np.float32, dim * _CENTROIDS)


def _word_slots(words: list[bytes]) -> npt.NDArray[np.int32]:
    slots = np.full(1 << (2 * len(words)).bit_length(), -1, np.int32)
    for number, word in enumerate(words):
        at = fnv1a(word) & (len(slots) - 1)
        while slots[at] >= 0:
            at = (at + 1) & (len(slots) - 1)
        slots[at] = number
    return slots


def _label_tree(counts: list[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The Huffman tree over the labels, with fastText's ties: labels come by falling count."""
    num_labels = len(counts)
    size = 2 * num_labels - 1
    weight = [*counts, *[10**15] * (num_labels - 1)]
    left, right = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    leaf, node = num_labels - 1, num_labels
    for parent in range(num_labels, size):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weight[leaf] < weight[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        left[parent], right[parent] = pair
        weight[parent] = weight[pair[0]] + weight[pair[1]]
    return left, right
