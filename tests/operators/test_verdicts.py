from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace.errors import DataError
from headrace.operators.shapes import VERDICT, VERDICT_COLUMN
from headrace.operators.verdicts import Verdicts


def test_the_first_rule_is_told() -> None:
    verdicts = Verdicts(4)
    value = np.array([1, 2, 3, 4])
    verdicts.drop("small", value < 2, value, 2)
    verdicts.drop("odd", value % 2 == 1, value * 10, 0.5)
    verdicts.drop(
        "marked", np.array([False, False, False, True]), note=pa.array(["a", "b", "c", "d"], pa.large_string())
    )
    column = verdicts.column()
    column.validate(full=True)
    assert column.type == VERDICT
    assert column.to_pylist() == [
        {"rule": "small", "value": 1.0, "threshold": 2.0, "note": None},
        None,
        {"rule": "odd", "value": 30.0, "threshold": 0.5, "note": None},
        {"rule": "marked", "value": None, "threshold": None, "note": "d"},
    ]


def test_what_is_no_number_is_null() -> None:
    verdicts = Verdicts(1)
    verdicts.drop("ratio", np.array([True]), np.array([np.nan]), 1)
    assert verdicts.column().to_pylist() == [{"rule": "ratio", "value": None, "threshold": 1.0, "note": None}]


def test_notes_of_several_rules_stay_with_their_rows() -> None:
    verdicts = Verdicts(3)
    for rule, row in (("late", 2), ("early", 0)):
        notes = pa.array([f"{rule} {i}" for i in range(3)])
        verdicts.drop(rule, np.arange(3) == row, note=notes)
    assert [row and row["note"] for row in verdicts.column().to_pylist()] == ["early 0", None, "late 2"]


def test_no_rows() -> None:
    verdicts = Verdicts(0)
    verdicts.drop("rule", np.zeros(0, np.bool_), np.zeros(0), 1, pa.array([], pa.string()))
    assert verdicts.column().type == VERDICT
    assert len(verdicts.column()) == 0


def test_a_verdict_is_not_overwritten() -> None:
    table = Verdicts(1).add_to(pa.table({"text": ["x"]}))
    assert table.schema.field(VERDICT_COLUMN).type == VERDICT
    with pytest.raises(DataError, match=VERDICT_COLUMN):
        Verdicts(1).add_to(table)
