"""The barrier: keys of all units in, one stored selection out, cut back to the units."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.operators.shapes import SELECTION_SCHEMA, Selection
from headrace.pipelines import selection
from headrace.pipelines.records import UnitRecord, put_record
from headrace.pipelines.selection import make_selection, selection_key, selection_of, split_selection
from headrace.pipelines.tables import table_to_bytes
from headrace.storage.lake import Lake
from tests.pipelines.plain import FirstOfText, documents

UNITS = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=6)


def store_keys(lake: Lake, work: str, units: Sequence[Sequence[str]]) -> None:
    """Scratch keys and records of units with these texts; ids are `unit-row`."""
    for unit, texts in enumerate(units):
        keys = FirstOfText().build()(documents(*texts))
        ids = pa.array([f"{unit:02d}-{row}" for row in range(len(texts))], pa.string())
        body = table_to_bytes(keys.add_column(0, "id", ids))
        lake.objects.put(f"{work}/keys-{unit}", body)
        scratch = {"keys": (f"{work}/keys-{unit}", len(body))}
        put_record(lake.objects, work, UnitRecord(unit, len(texts), 0, 0, {}, {}, {}, scratch=scratch))


@pytest.fixture(autouse=True)
def _forget() -> None:
    selection._load.cache_clear()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(units=UNITS)
def test_each_unit_gets_its_own_part(lake: Lake, units: list[list[str]]) -> None:
    work = "work/" + "_".join("".join(unit) or "x" for unit in units)
    store_keys(lake, work, units)
    make_selection(lake.objects, work, len(units), FirstOfText())
    seen: dict[str, str] = {}
    for unit, texts in enumerate(units):
        expected = []
        for row, text in enumerate(texts):
            if text in seen:
                expected.append((row, seen[text]))
            seen.setdefault(text, f"{unit:02d}-{row}")
        mine = selection_of(lake, work, unit)
        assert list(zip(mine.rows.to_pylist(), mine.partner.to_pylist(), strict=True)) == expected
        assert {row["rule"] for row in mine.verdict.to_pylist()} <= {"repeated"}


def test_a_stored_selection_is_never_made_again(lake: Lake) -> None:
    store_keys(lake, "work/k", [["a"], ["a"]])
    make_selection(lake.objects, "work/k", 2, FirstOfText())
    stored = lake.objects.get(selection_key("work/k"))

    class Refuses(FirstOfText):
        def select(self, keys: pa.Table) -> Selection:
            raise AssertionError("decided already")

    make_selection(lake.objects, "work/k", 2, Refuses())
    assert lake.objects.get(selection_key("work/k")) == stored


def test_units_without_rows_make_an_empty_selection(lake: Lake) -> None:
    store_keys(lake, "work/k", [[], []])
    make_selection(lake.objects, "work/k", 2, FirstOfText())
    for unit in (0, 1):
        assert selection_of(lake, "work/k", unit).rows.to_pylist() == []


def test_values_and_notes_of_the_verdicts_survive() -> None:
    rows = [{"row": n, "rule": "r", "value": 0.5, "threshold": 0.25, "note": "n", "partner": "p"} for n in (0, 2)]
    found = split_selection(pa.Table.from_pylist(rows, schema=SELECTION_SCHEMA))
    assert found.rows.to_pylist() == [0, 2]
    assert found.verdict.to_pylist() == [{"rule": "r", "value": 0.5, "threshold": 0.25, "note": "n"}] * 2
    assert found.partner.to_pylist() == ["p", "p"]
    none = split_selection(SELECTION_SCHEMA.empty_table())
    assert (len(none.rows), len(none.verdict), len(none.partner)) == (0, 0, 0)
