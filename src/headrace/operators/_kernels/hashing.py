"""Keys, hashes and comparisons of byte ranges inside a kernel.

Not stable across releases and never stored: only tables that live as long as one call use them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators._kernels.compile import inlined, inner
from headrace.operators._kernels.memory import Bytes, load8, load64

_M1 = np.uint64(0x9E3779B97F4A7C15)
_M2 = np.uint64(0xD6E8FEB86659FD93)
_32 = np.uint64(32)


@inlined
def few_bytes(text: Any, start: Any, size: Any) -> Any:
    """The `size` bytes (1 to 7) at `start` as a little-endian integer; reads nothing outside the array."""
    if start + 8 <= len(text):
        return load64(text, start) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    value = np.uint64(0)
    for k in range(size):
        value |= np.uint64(load8(text, start + k)) << np.uint64(8 * k)
    return value


@inner
def hash_range(text: Bytes, start: int, end: int) -> Any:
    """64-bit hash of text[start:end]."""
    value = np.uint64(end - start) * _M1
    while start + 8 <= end:
        value = (value ^ load64(text, start)) * _M1
        value ^= value >> _32
        start += 8
    if start < end:
        value = (value ^ few_bytes(text, start, end - start)) * _M1
    value = (value ^ (value >> _32)) * _M2
    return value ^ (value >> _32)


@inner
def same_bytes(left: Bytes, left_start: int, right: Bytes, right_start: int, size: int) -> bool:
    """Whether two ranges of `size` bytes are equal."""
    k = 0
    while k + 8 <= size:
        if load64(left, left_start + k) != load64(right, right_start + k):
            return False
        k += 8
    while k < size:
        if load8(left, left_start + k) != load8(right, right_start + k):
            return False
        k += 1
    return True
