"""The most likely label of each row, as fastText predicts it, with the work for a repeated word done once.

With word n-grams of one, a word adds the same vector wherever it stands: its summed subword vectors are cached for the
length of one call.  The sum of a document does not depend on what the cache holds, so neither do results on batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.compile import inlined, inner, kernel
from headrace.operators._kernels.fasttext_model import Network
from headrace.operators._kernels.hashing import hash_range, same_bytes
from headrace.operators._kernels.memory import Bytes, load8
from headrace.operators._kernels.windows import window

_CACHED_WORDS = 1 << 16
_CACHED_WORD_BYTES = 40  # longer words seldom come again
_FNV_START = np.uint32(2166136261)
_FNV_PRIME = np.uint32(16777619)
_SIGN = np.uint32(0xFFFFFF00)
_BEGIN, _END = np.uint8(ord("<")), np.uint8(ord(">"))  # fastText's marks around a word
_LOG_GUARD = np.float32(1e-5)  # fastText adds it under the logarithm


@inlined
def _fnv_step(value: Any, byte: Any) -> Any:
    widened = np.uint32(byte)
    if byte >= 128:
        widened |= _SIGN
    return np.uint32((value ^ widened) * _FNV_PRIME)


@inlined
def _is_blank(byte: Any) -> Any:
    return byte == 32 or 9 <= byte <= 13 or byte == 0


@inner
def _add_word(
    text: Bytes,
    start: int,
    end: int,
    inputs: npt.NDArray[np.float32],
    ngram_rows: npt.NDArray[np.int32],
    min_chars: int,
    max_chars: int,
    slots: npt.NDArray[np.int32],
    words: Bytes,
    word_starts: npt.NDArray[np.int64],
    vector: npt.NDArray[np.float32],
) -> int:
    """Set `vector` to the sum of the rows of the word and of its character n-grams; returns how many."""
    dim = inputs.shape[1]
    for k in range(dim):
        vector[k] = 0
    found = 0
    num_words = len(word_starts) - 1
    value = _FNV_START
    for i in range(start, end):
        value = _fnv_step(value, load8(text, i))
    at = np.int64(value) & (len(slots) - 1)
    while slots[at] >= 0:
        word = slots[at]
        size = word_starts[word + 1] - word_starts[word]
        if size == end - start and same_bytes(words, word_starts[word], text, start, size):
            found += 1
            for k in range(dim):
                vector[k] += inputs[word, k]
            break
        at = (at + 1) & (len(slots) - 1)
    length = end - start + 2  # with the two marks
    for i in range(length):
        byte = _BEGIN if i == 0 else (_END if i == length - 1 else load8(text, start + i - 1))
        if byte & 0xC0 == 0x80:
            continue
        value = _FNV_START
        j = i
        chars = 1
        while j < length and chars <= max_chars:
            byte = _BEGIN if j == 0 else (_END if j == length - 1 else load8(text, start + j - 1))
            value = _fnv_step(value, byte)
            j += 1
            while j < length - 1 and load8(text, start + j - 1) & 0xC0 == 0x80:
                value = _fnv_step(value, load8(text, start + j - 1))
                j += 1
            if chars >= min_chars and not (chars == 1 and (i == 0 or j == length)):
                row = ngram_rows[np.int64(value) % len(ngram_rows)]
                if row >= 0:
                    found += 1
                    for k in range(dim):
                        vector[k] += inputs[num_words + row, k]
            chars += 1
    return found


@kernel
def predict(
    text: Bytes,
    offsets: npt.NDArray[np.int64],
    num_windows: int,
    window_bytes: int,
    network: Network,
    labels: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
) -> None:
    """Write each row's best label and its probability; label -1 where the row has no word."""
    (inputs, outputs, ngram_rows, min_chars, max_chars, slots, words, word_starts, left, right, eos) = network
    dim = inputs.shape[1]
    total = np.zeros(dim, np.float32)
    vector = np.zeros(dim, np.float32)
    num_nodes = len(left)
    num_labels = (num_nodes + 1) // 2
    chance = np.zeros(num_nodes, np.float32)
    # Cache: slot -> entry; an entry is a range of `text`, a vector, and the number of rows in it.
    cache_mask = 2 * _CACHED_WORDS - 1
    cache = np.full(cache_mask + 1, -1, np.int32)
    cached_start = np.empty(_CACHED_WORDS, np.int64)
    cached_size = np.empty(_CACHED_WORDS, np.int64)
    cached_found = np.empty(_CACHED_WORDS, np.int64)
    cached_vector = np.empty((_CACHED_WORDS, dim), np.float32)
    num_cached = 0
    for row in range(len(offsets) - 1):
        row_start = offsets[row]
        row_end = offsets[row + 1]
        is_cut = row_end - row_start > num_windows * window_bytes
        total[:] = 0
        found = 0
        has_word = False
        for number in range(num_windows if is_cut else 1):
            i = row_start
            end = row_end
            if is_cut:
                i, end = window(text, row_start, row_end, number, num_windows, window_bytes)
            while i < end:
                if _is_blank(load8(text, i)):
                    i += 1
                    continue
                start = i
                while i < end and not _is_blank(load8(text, i)):
                    i += 1
                has_word = True
                size = i - start
                entry = np.int64(-1)
                at = np.int64(0)
                if size <= _CACHED_WORD_BYTES:
                    at = np.int64(hash_range(text, start, i)) & cache_mask
                    while cache[at] >= 0:
                        entry = np.int64(cache[at])
                        if cached_size[entry] == size and same_bytes(text, cached_start[entry], text, start, size):
                            break
                        entry = np.int64(-1)
                        at = np.int64((at + 1) & cache_mask)
                if entry >= 0:
                    found += cached_found[entry]
                    for k in range(dim):
                        total[k] += cached_vector[entry, k]
                    continue
                word_found = _add_word(
                    text, start, i, inputs, ngram_rows, min_chars, max_chars, slots, words, word_starts, vector
                )
                found += word_found
                for k in range(dim):
                    total[k] += vector[k]
                if size <= _CACHED_WORD_BYTES and num_cached < _CACHED_WORDS:
                    cache[at] = num_cached
                    cached_start[num_cached] = start
                    cached_size[num_cached] = size
                    cached_found[num_cached] = word_found
                    for k in range(dim):
                        cached_vector[num_cached, k] = vector[k]
                    num_cached += 1
        if eos >= 0:
            found += 1
            for k in range(dim):
                total[k] += inputs[eos, k]
        labels[row] = -1
        scores[row] = 0
        if not has_word or found == 0:
            continue
        for k in range(dim):
            total[k] /= np.float32(found)
        # Down the label tree, parents before children.
        chance[num_nodes - 1] = 1
        for node in range(num_nodes - 1, num_labels - 1, -1):
            dot = np.float32(0)
            for k in range(dim):
                dot += outputs[node - num_labels, k] * total[k]
            goes_right = np.float32(1) / (np.float32(1) + np.exp(-dot))
            chance[left[node]] = chance[node] * (np.float32(1) - goes_right + _LOG_GUARD)
            chance[right[node]] = chance[node] * (goes_right + _LOG_GUARD)
        best = 0
        for label in range(1, num_labels):
            if chance[label] > chance[best]:
                best = label
        labels[row] = best
        scores[row] = min(chance[best], np.float32(1))
