"""See `Length`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from headrace.operators._kernels.require import require_numba
from headrace.operators.columns import text_buffers, text_column
from headrace.operators.shapes import Map, MapFunction
from headrace.operators.verdicts import Verdicts

_PLACE = "text.length"
_Counts = npt.NDArray[np.int64]


class Length(Map):
    """Texts that are too short or too long are dropped.

    Characters are code points, words are those of `str.split`, bytes are UTF-8.  Limits are inclusive: a text of
    exactly `min_words` words stays.  Rules are tried in the order of the fields.

    Columns
        reads    text: string or large_string, null allowed
        writes   the verdict: rules "null_text" and the name of the limit, with the count and the limit
        rows     n -> n, order kept
    Cost: CPU, O(bytes); no model memory.  See the folder's README for MB/s.
    Raises: DataError if the column is missing, is not string, or is not UTF-8.
    Source: ours.

    >>> table = pa.table({"text": ["too short", "one two three"]})
    >>> verdict = Length(min_words=3).build()(table)["_verdict"].to_pylist()
    >>> verdict[0]["rule"], verdict[0]["value"], verdict[0]["threshold"], verdict[1]
    ('min_words', 2.0, 3.0, None)
    """

    column: str = Field("text", description="column that holds the text")
    min_chars: int | None = Field(None, ge=0, description="fewest code points")
    max_chars: int | None = Field(None, ge=0, description="most code points")
    min_words: int | None = Field(None, ge=0, description="fewest words")
    max_words: int | None = Field(None, ge=0, description="most words; needs the extra `pipelines`, as min_words does")
    min_bytes: int | None = Field(None, ge=0, description="fewest bytes of UTF-8")
    max_bytes: int | None = Field(None, ge=0, description="most bytes of UTF-8")

    @model_validator(mode="after")
    def _limits_make_sense(self) -> Self:
        if all(limit is None for unit in ("chars", "words", "bytes") for limit in self._limits(unit)):
            raise ValueError("set at least one limit, such as min_words")
        for unit in ("chars", "words", "bytes"):
            low, high = self._limits(unit)
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{unit} {low} is above max_{unit} {high}: nothing would pass")
        return self

    def _limits(self, unit: str) -> tuple[int | None, int | None]:
        return getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")

    def build(self) -> MapFunction:
        """Compile or load the word counter where words are limited."""
        counters: dict[str, Callable[[pa.LargeStringArray], _Counts]] = {"chars": _count_chars, "bytes": _count_bytes}
        if self.min_words is not None or self.max_words is not None:
            counters["words"] = _word_counter()

        def length(table: pa.Table) -> pa.Table:
            texts = text_column(table, self.column, _PLACE)
            verdicts = Verdicts(len(texts))
            verdicts.drop("null_text", texts.is_null().to_numpy(zero_copy_only=False))
            for unit in ("chars", "words", "bytes"):
                low, high = self._limits(unit)
                if low is None and high is None:
                    continue
                counts = counters[unit](texts)
                if low is not None:
                    verdicts.drop(f"min_{unit}", counts < low, counts, low)
                if high is not None:
                    verdicts.drop(f"max_{unit}", counts > high, counts, high)
            return verdicts.add_to(table)

        return length


def _count_chars(texts: pa.LargeStringArray) -> _Counts:
    counts: _Counts = pc.fill_null(pc.utf8_length(texts), 0).to_numpy(zero_copy_only=False)
    return counts


def _count_bytes(texts: pa.LargeStringArray) -> _Counts:
    counts: _Counts = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    return counts


def _word_counter() -> Callable[[pa.LargeStringArray], _Counts]:
    require_numba(_PLACE)
    from headrace.operators._kernels.characters import SPACE, character_classes
    from headrace.operators._kernels.word_count import count_words as count_rows

    classes = character_classes()

    def count_words(texts: pa.LargeStringArray) -> _Counts:
        counts = np.zeros(len(texts), np.int64)
        count_rows(*text_buffers(texts), classes, SPACE, counts)
        return counts

    return count_words
