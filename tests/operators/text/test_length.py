from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError

from headrace.errors import DataError
from headrace.operators.text.length import Length
from tests.operators.layouts import EDGE_TEXTS, corpus_texts, fuzz_texts, layouts, text_table

RULES: list[tuple[str, str, Any]] = [
    ("min_chars", "chars", lambda value, limit: value < limit),
    ("max_chars", "chars", lambda value, limit: value > limit),
    ("min_words", "words", lambda value, limit: value < limit),
    ("max_words", "words", lambda value, limit: value > limit),
    ("min_bytes", "bytes", lambda value, limit: value < limit),
    ("max_bytes", "bytes", lambda value, limit: value > limit),
]
LIMITS: tuple[dict[str, Any], ...] = (
    {"min_words": 3},
    {"max_words": 3},
    {"min_chars": 10, "max_chars": 20},
    {"min_bytes": 12, "max_bytes": 30},
    {"min_chars": 3, "max_chars": 40, "min_words": 2, "max_words": 9, "min_bytes": 6, "max_bytes": 50},
)


def reference(text: str | None, limits: dict[str, Any]) -> dict[str, Any] | None:
    if text is None:
        return {"rule": "null_text", "value": None, "threshold": None, "note": None}
    measured = {"chars": len(text), "words": len(text.split()), "bytes": len(text.encode())}
    for rule, unit, breaks in RULES:
        if rule in limits and breaks(measured[unit], limits[rule]):
            return {"rule": rule, "value": measured[unit], "threshold": limits[rule], "note": None}
    return None


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_equals_the_reference(limits: dict[str, Any]) -> None:
    texts = [*EDGE_TEXTS, *fuzz_texts(3000, seed=1)]
    for name, table in layouts(texts):
        result = Length(**limits).build()(table)
        assert result.column("_verdict").to_pylist() == [reference(text, limits) for text in texts], name


def test_real_documents(corpus_dir: Path) -> None:
    texts = corpus_texts(corpus_dir, 2000, seed=2)
    limits: dict[str, Any] = {"min_chars": 100, "max_words": 200, "min_bytes": 120}
    verdicts = Length(**limits).build()(text_table(texts)).column("_verdict").to_pylist()
    assert verdicts == [reference(text, limits) for text in texts]


def test_limits_are_inclusive() -> None:
    step = Length(min_words=2, max_words=3).build()
    rules = [row and row["rule"] for row in step(text_table(["a", "a b", "a b c", "a b c d"]))["_verdict"].to_pylist()]
    assert rules == ["min_words", None, None, "max_words"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "set at least one limit"),
        ({"min_words": 5, "max_words": 4}, "min_words 5 is above max_words 4"),
        ({"min_words": -1}, "greater than or equal to 0"),
        ({"min_words": "ten"}, "valid integer"),
        ({"min_word": 1}, "Extra inputs"),
    ],
)
def test_bad_parameters(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Length(**fields)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match="'body'"):
        Length(column="body", min_chars=1).build()(pa.table({"text": ["x"]}))
