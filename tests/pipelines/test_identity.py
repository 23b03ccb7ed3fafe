"""Ids are unique in what is published, the first row of an id keeps it, and it does not matter who does what again."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.pipelines.identity import find_repeats, id_hashes, rename_repeats, store_repeats
from headrace.pipelines.records import UnitRecord
from headrace.storage.lake import Lake
from tests.pipelines.plain import documents

IDS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5), max_size=6)


def unit_of(lake: Lake, run: str, unit: int, ids: list[str]) -> UnitRecord:
    """The record of a unit that keeps rows with these ids, renamed as stored."""
    rows = documents(*(f"text {unit} {row}" for row in range(len(ids))))
    rows = rows.set_column(0, rows.schema.field(0), [pa.array(ids, pa.string())])
    rows, renamed = rename_repeats(lake.objects, run, unit, rows)
    place = f"ids/{run}/{unit}-{renamed}"
    lake.objects.put(place, id_hashes(rows["id"]))
    record = UnitRecord(unit, 0, 0, 0, {}, {}, {}, scratch={"ids": (place, 8 * len(ids))}, renamed=renamed)
    published.setdefault(run, {})[unit] = rows["id"].to_pylist()
    return record


published: dict[str, dict[int, list[str]]] = {}
numbers = iter(range(10**9))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(units=IDS, data=st.data())
def test_ids_become_unique_and_the_first_keeps_its_own(lake: Lake, units: list[list[str]], data: st.DataObject) -> None:
    run = f"r{next(numbers)}"
    records = [unit_of(lake, run, unit, ids) for unit, ids in enumerate(units)]
    found = find_repeats(lake.objects, records)
    seen: set[str] = set()
    expected = []
    for ids in units:
        firsts = [id not in seen and id not in ids[:row] for row, id in enumerate(ids)]
        seen.update(ids)
        expected.append(firsts)
    assert {int(unit) for unit in found} == {unit for unit, firsts in enumerate(expected) if not all(firsts)}
    if found:
        store_repeats(lake.objects, run, found)
    # Killed in the middle: some units are done again, the repeats are looked for anew, then the rest.
    for unit in data.draw(st.permutations(sorted(int(unit) for unit in found))):
        records[unit] = unit_of(lake, run, unit, units[unit])
        again = find_repeats(lake.objects, records)
        if again:
            store_repeats(lake.objects, run, again)
    assert find_repeats(lake.objects, records) == {}
    result = [published[run][unit] for unit in range(len(units))]
    flat = [id for ids in result for id in ids]
    assert len(set(flat)) == len(flat)
    for ids, given_ids, firsts in zip(result, units, expected, strict=True):
        for id, given_id, is_first in zip(ids, given_ids, firsts, strict=True):
            assert (id == given_id) == is_first
            assert id.partition("~")[0] == given_id
    assert sum(record.renamed for record in records) == sum(not first for firsts in expected for first in firsts)


def test_the_suffix_comes_from_the_row_and_not_from_its_place_in_a_run(lake: Lake) -> None:
    rows = documents("one", "two")
    rows = rows.set_column(0, rows.schema.field(0), [["a", "a"]])
    for run in ("r1", "r2"):
        record = dataclasses.replace(unit_of(lake, run, 0, ["a", "a"]))
        store_repeats(lake.objects, run, find_repeats(lake.objects, [record]))
    first, renamed = rename_repeats(lake.objects, "r1", 0, rows)
    assert renamed == 1
    assert first["id"].to_pylist()[0] == "a"
    assert rename_repeats(lake.objects, "r2", 0, rows)[0].equals(first)
    assert first.schema.equals(rows.schema)
    assert first.drop_columns(["id"]).equals(rows.drop_columns(["id"]))


def test_a_new_name_that_the_source_uses_too_is_renamed_in_the_next_round(lake: Lake) -> None:
    """Here a later unit's own id is what an earlier unit's row was renamed to."""
    records = [unit_of(lake, "probe", 0, ["a", "a"])]
    store_repeats(lake.objects, "probe", find_repeats(lake.objects, records))
    unit_of(lake, "probe", 0, ["a", "a"])
    taken = published["probe"][0][1]
    assert taken.startswith("a~")
    units = [["a", "a"], [taken, "b"]]
    records = [unit_of(lake, "r", unit, ids) for unit, ids in enumerate(units)]
    for rounds in (1, 2):
        found = find_repeats(lake.objects, records)
        assert set(found) == ({"0"} if rounds == 1 else {"1"})
        store_repeats(lake.objects, "r", found)
        records = [unit_of(lake, "r", unit, ids) for unit, ids in enumerate(units)]
    assert find_repeats(lake.objects, records) == {}
    assert published["r"][0] == ["a", taken]
    assert published["r"][1][0].startswith(f"{taken}~")
    assert published["r"][1][1] == "b"


def test_no_units_and_no_renames(lake: Lake) -> None:
    assert find_repeats(lake.objects, []) == {}
    rows = documents("a")
    assert rename_repeats(lake.objects, "r", 0, rows) == (rows, 0)
