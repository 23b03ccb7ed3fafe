"""Words of each row, as `len(text.split())` counts them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.compile import kernel
from headrace.operators._kernels.memory import Bytes, load8
from headrace.operators._kernels.utf8 import decode


@kernel
def count_words(
    text: Bytes, offsets: npt.NDArray[np.int64], classes: Bytes, space: int, out: npt.NDArray[np.int64]
) -> None:
    """Write the number of words of each row; `classes[code point] & space` marks white space."""
    for row in range(len(offsets) - 1):
        i = offsets[row]
        end = offsets[row + 1]
        words = 0
        in_word = False
        while i < end:
            c = np.int64(load8(text, i))
            size = 1
            if c >= 128:
                c, size = decode(text, i, c)
            is_word = (load8(classes, c) & space) == 0
            words += is_word and not in_word
            in_word = is_word
            i += size
        out[row] = words
