"""What the Gopher quality rules measure, counted in one pass without any memory of the document's size.

Words are those of `str.split`, lines those of `str.splitlines`; characters are code points.  Only counts come out:
thresholds, fractions and verdicts are numpy on them, so another threshold needs no other kernel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace.operators._kernels.characters import ALPHA, LINE_BREAK, SPACE, SYMBOL, WORDLIKE
from headrace.operators._kernels.compile import kernel
from headrace.operators._kernels.memory import Bytes, load8
from headrace.operators._kernels.utf8 import decode
from headrace.operators._kernels.word_list import WordList, find_word, may_be_listed

# Columns of the result.
WORDS = 0
WORDLIKE_WORDS = 1  # with a character that is not punctuation
WORDLIKE_CHARS = 2  # characters of those words
HASHES = 3  # `#`
ELLIPSES = 4  # `...` as str.count counts it, and U+2026
ALPHA_WORDS = 5  # with an alphabetic character
STOP_WORDS = 6  # distinct ones
LINES = 7
BULLET_LINES = 8  # whose first word starts with `-` or U+2022
ELLIPSIS_LINES = 9  # whose last word ends with `...` or U+2026
NUM_COUNTS = 10

_SPACE, _LF, _CR, _HASH, _DASH, _DOT = 32, 10, 13, 35, 45, 46


@kernel
def count_quality(
    text: Bytes,
    offsets: npt.NDArray[np.int64],
    classes: Bytes,
    stop_words: WordList,
    counts: npt.NDArray[np.int64],
) -> None:
    """Fill counts[row, column]; every column of every row is written."""
    hints, sizes, heads, blob, starts = stop_words
    last_seen = np.full(len(sizes), -1, np.int64)  # stop word -> row that had it last
    for row in range(len(offsets) - 1):
        i = offsets[row]
        end = offsets[row + 1]
        words = 0
        wordlike_words = 0
        wordlike_chars = 0
        hashes = 0
        ellipses = 0
        alpha_words = 0
        distinct_stop_words = 0
        lines = 0
        bullet_lines = 0
        ellipsis_lines = 0
        line_start = i
        line_has_word = False
        word_end = i
        while True:
            # White space and line ends; the end of the text ends a line that is not empty.
            while i <= end:
                size = 1
                if i == end:
                    ends_line = line_start < end
                else:
                    c = np.int64(load8(text, i))
                    if c == _SPACE:
                        i += 1
                        continue
                    if c >= 128:
                        c, size = decode(text, i, c)
                    what = load8(classes, c)
                    if what & SPACE == 0:
                        break
                    ends_line = (what & LINE_BREAK) != 0
                    if c == _CR and i + 1 < end and load8(text, i + 1) == _LF:
                        size = 2
                if ends_line:
                    lines += 1
                    if line_has_word and word_end - line_start >= 3:
                        x = load8(text, word_end - 3)
                        y = load8(text, word_end - 2)
                        z = load8(text, word_end - 1)
                        ellipsis_lines += (x == _DOT and y == _DOT and z == _DOT) or (
                            x == 0xE2 and y == 0x80 and z == 0xA6
                        )
                    line_start = i + size
                    line_has_word = False
                i += size
            if i > end:
                break
            # A word.
            word_start = i
            seen = np.uint8(0)
            extra = 0  # bytes beyond the first of each character
            while i < end:
                byte = load8(text, i)
                # Two branches, so that the step to the next byte waits for no decoding.
                if byte < 128:
                    what = load8(classes, byte)
                    if what & SPACE:
                        break
                    seen |= what
                    i += 1
                else:
                    c, size = decode(text, i, np.int64(byte))
                    what = load8(classes, c)
                    if what & SPACE:
                        break
                    ellipses += c == 0x2026
                    seen |= what
                    extra += size - 1
                    i += size
            word_end = i
            words += 1
            if not line_has_word:
                line_has_word = True
                first = load8(text, word_start)
                bullet_lines += first == _DASH or (
                    first == 0xE2 and load8(text, word_start + 1) == 0x80 and load8(text, word_start + 2) == 0xA2
                )
            if seen & WORDLIKE:
                wordlike_words += 1
                wordlike_chars += word_end - word_start - extra
            alpha_words += (seen & ALPHA) != 0
            if seen & SYMBOL:
                dots = 0
                for j in range(word_start, word_end):
                    c = np.int64(load8(text, j))
                    hashes += c == _HASH
                    dots = dots + 1 if c == _DOT else 0
                    if dots == 3:
                        ellipses += 1
                        dots = 0
            size = word_end - word_start
            if may_be_listed(hints, text, word_start, size):
                stop_word = find_word(sizes, heads, blob, starts, text, word_start, size)
                if stop_word >= 0 and last_seen[stop_word] != row:
                    last_seen[stop_word] = row
                    distinct_stop_words += 1
        counts[row, WORDS] = words
        counts[row, WORDLIKE_WORDS] = wordlike_words
        counts[row, WORDLIKE_CHARS] = wordlike_chars
        counts[row, HASHES] = hashes
        counts[row, ELLIPSES] = ellipses
        counts[row, ALPHA_WORDS] = alpha_words
        counts[row, STOP_WORDS] = distinct_stop_words
        counts[row, LINES] = lines
        counts[row, BULLET_LINES] = bullet_lines
        counts[row, ELLIPSIS_LINES] = ellipsis_lines
