"""See `GopherQuality`."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from headrace.operators._kernels.require import require_numba
from headrace.operators.columns import text_buffers, text_column
from headrace.operators.shapes import Map, MapFunction
from headrace.operators.verdicts import Verdicts

_PLACE = "text.gopher_quality"

# Paper, appendix A.1.1.
_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")

_Measure = npt.NDArray[np.int64] | npt.NDArray[np.float64]


class GopherQuality(Map):
    """A document without the shape of prose is dropped, by the first rule that it breaks.

    Profile `datatrove-split`: datatrove 0.9's rules, denominators and punctuation, words = `str.split`, lines =
    `str.splitlines`.  Made for English: the stop words are, and languages without spaces have few words.  A limit of
    null switches its rule off; zero is a limit like any other (in datatrove it switches off).

    Columns
        reads    text: string or large_string, null allowed
        writes   the verdict: rule "null_text" or the name of the limit, with what was measured and the limit
        rows     n -> n, order kept
    Cost: CPU, O(bytes), constant memory; no model.  See the folder's README for MB/s.
    Raises: DataError if the column is missing, is not string, or is not UTF-8.
    Source: Rae et al. 2021, arXiv 2112.11446, appendix A.1.1; the reading of it is datatrove's.

    >>> table = pa.table({"text": ["Just a caption ...", "A long way home and the road goes with it. " * 9]})
    >>> verdict = GopherQuality().build()(table)["_verdict"].to_pylist()
    >>> verdict[0]["rule"], verdict[0]["value"], verdict[0]["threshold"], verdict[1]
    ('min_words', 3.0, 50.0, None)
    """

    column: str = Field("text", description="column that holds the text")
    profile: Literal["datatrove-split"] = Field("datatrove-split", description="what words, lines and fractions are")
    min_words: int | None = Field(50, ge=0, description="fewest words, not counting words of punctuation only")
    max_words: int | None = Field(100_000, ge=0, description="most words, counted in the same way")
    min_mean_word_length: float | None = Field(3, ge=0, description="lowest mean length of those words (characters)")
    max_mean_word_length: float | None = Field(10, ge=0, description="highest mean length of those words (characters)")
    max_hash_ratio: float | None = Field(0.1, ge=0, description="most `#` per word")
    max_ellipsis_ratio: float | None = Field(0.1, ge=0, description="most ellipses per word")
    max_bullet_lines_frac: float | None = Field(0.9, ge=0, le=1, description="most lines that start with a bullet")
    max_ellipsis_lines_frac: float | None = Field(0.3, ge=0, le=1, description="most lines that end with an ellipsis")
    min_alpha_words_frac: float | None = Field(0.8, ge=0, le=1, description="fewest words with an alphabetic character")
    min_stop_words: int | None = Field(2, ge=0, description="fewest distinct stop words")
    stop_words: list[str] = Field(list(_STOP_WORDS), description="case-sensitive words of the language")

    @field_validator("stop_words")
    @classmethod
    def _can_match(cls, stop_words: list[str]) -> list[str]:
        for word in stop_words:
            if word.split() != [word]:
                raise ValueError(f"{word!r} can match no word: stop words have no white space and are not empty")
        if len(set(stop_words)) < len(stop_words):
            raise ValueError("a stop word is listed twice")
        return stop_words

    @model_validator(mode="after")
    def _can_pass(self) -> Self:
        for low, high in (("min_words", "max_words"), ("min_mean_word_length", "max_mean_word_length")):
            bottom, top = getattr(self, low), getattr(self, high)
            if bottom is not None and top is not None and bottom > top:
                raise ValueError(f"{low} {bottom} is above {high} {top}: nothing would pass")
        if self.min_stop_words is not None and self.min_stop_words > len(self.stop_words):
            raise ValueError(
                f"min_stop_words {self.min_stop_words} is more than there are stop_words: nothing would pass"
            )
        return self

    def build(self) -> MapFunction:
        """Compile or load the kernel."""
        require_numba(_PLACE)
        from headrace.operators._kernels import quality_counts as q
        from headrace.operators._kernels.characters import character_classes
        from headrace.operators._kernels.word_list import word_list

        classes = character_classes()
        stop_words = word_list(self.stop_words)

        def gopher_quality(table: pa.Table) -> pa.Table:
            texts = text_column(table, self.column, _PLACE)
            counts = np.empty((len(texts), q.NUM_COUNTS), np.int64)
            q.count_quality(*text_buffers(texts), classes, stop_words, counts)
            verdicts = Verdicts(len(texts))
            verdicts.drop("null_text", texts.is_null().to_numpy(zero_copy_only=False))
            words, lines = counts[:, q.WORDS], counts[:, q.LINES]
            num_words = counts[:, q.WORDLIKE_WORDS]
            word_length = _ratio(counts[:, q.WORDLIKE_CHARS], num_words)
            # The order is the profile's: the first rule that is broken is the one that is told.
            _at_least(verdicts, "min_words", num_words, self.min_words)
            _at_most(verdicts, "max_words", num_words, self.max_words)
            _at_least(verdicts, "min_mean_word_length", word_length, self.min_mean_word_length)
            _at_most(verdicts, "max_mean_word_length", word_length, self.max_mean_word_length)
            _at_most(verdicts, "max_hash_ratio", _ratio(counts[:, q.HASHES], words), self.max_hash_ratio)
            _at_most(verdicts, "max_ellipsis_ratio", _ratio(counts[:, q.ELLIPSES], words), self.max_ellipsis_ratio)
            bullets, ellipses = counts[:, q.BULLET_LINES], counts[:, q.ELLIPSIS_LINES]
            _at_most(verdicts, "max_bullet_lines_frac", _ratio(bullets, lines), self.max_bullet_lines_frac)
            _at_most(verdicts, "max_ellipsis_lines_frac", _ratio(ellipses, lines), self.max_ellipsis_lines_frac)
            alpha_words = _ratio(counts[:, q.ALPHA_WORDS], words)
            _at_least(verdicts, "min_alpha_words_frac", alpha_words, self.min_alpha_words_frac)
            _at_least(verdicts, "min_stop_words", counts[:, q.STOP_WORDS], self.min_stop_words)
            return verdicts.add_to(table)

        return gopher_quality


def _ratio(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """NaN, which no rule takes exception to, where there is nothing to divide by."""
    ratio = np.full(len(part), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def _at_least(verdicts: Verdicts, rule: str, value: _Measure, limit: float | None) -> None:
    if limit is not None:
        verdicts.drop(rule, value < limit, value, limit)


def _at_most(verdicts: Verdicts, rule: str, value: _Measure, limit: float | None) -> None:
    if limit is not None:
        verdicts.drop(rule, value > limit, value, limit)
