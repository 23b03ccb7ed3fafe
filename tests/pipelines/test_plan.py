"""Stored plans: units tile the input whatever the unit size, and the first writer's plan is everybody's."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import DatasetNotFound
from headrace.operators.shapes import InputFile, InputPart, Reader, ReadFunction
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.plan import (
    RunPlan,
    Unit,
    UnitPlan,
    cut_units,
    load_run_plan,
    run_plan_key,
    schema_from_text,
    schema_to_text,
    stored_unit_plan,
)
from headrace.storage.contract import DOCUMENT
from headrace.storage.lake import Lake


class Sized(Reader):
    """Files of given sizes; those of `whole` cannot be cut, as a compressed file can't."""

    sizes: tuple[int, ...]
    whole: tuple[int, ...] = ()

    def files(self) -> list[InputFile]:
        return [InputFile(f"{n:04d}", "/in", size, "m") for n, size in enumerate(self.sizes)]

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        return DOCUMENT

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        if int(file.path) in self.whole:
            return [InputPart(file, 0, file.size_bytes, file.size_bytes)]
        bounds = [*range(0, max(file.size_bytes, 1), part_bytes), file.size_bytes]
        return [InputPart(file, start, stop, stop - start) for start, stop in pairwise(bounds)]

    def build(self) -> ReadFunction:
        raise NotImplementedError


SIZES = st.lists(st.integers(0, 20_000), max_size=12)


@given(SIZES, st.sets(st.integers(0, 11)), st.integers(1024, 40_000))
@example([0, 0, 0], set(), 1024)
@example([20_000], {0}, 1024)
def test_units_tile_the_parts_for_any_unit_size(sizes: Sequence[int], whole: set[int], unit_bytes: int) -> None:
    reader = Sized(sizes=tuple(sizes), whole=tuple(sorted(whole)))
    manifest = Manifest.of(reader)
    units = cut_units(reader, manifest, unit_bytes)
    parts = [part for file in manifest.files for part in reader.parts(file, unit_bytes)]
    assert [part for unit in units for part in unit.parts] == parts
    assert [unit.number for unit in units] == list(range(len(units)))
    for unit in units:
        assert unit.parts
        assert unit.size_bytes == sum(part.size_bytes for part in unit.parts)
        assert len(unit.parts) == 1 or unit.size_bytes <= unit_bytes
    for one, next_ in pairwise(units):  # no two neighbours could have been one
        first = next_.parts[0].size_bytes
        assert one.size_bytes + 512 * len(one.parts) + first > unit_bytes


@given(SIZES, st.integers(1024, 40_000))
def test_a_unit_plan_survives_json(sizes: Sequence[int], unit_bytes: int) -> None:
    reader = Sized(sizes=tuple(sizes))
    plan = UnitPlan(DOCUMENT, cut_units(reader, Manifest.of(reader), unit_bytes))
    again = UnitPlan.from_json(plan.to_json())
    assert again == plan
    assert again.schema.equals(DOCUMENT, check_metadata=True)


def test_many_units_of_one_file_name_it_once() -> None:
    reader = Sized(sizes=(1 << 20,))
    body = UnitPlan(DOCUMENT, cut_units(reader, Manifest.of(reader), 1024)).to_json()
    assert body.count(b'"path"') == 1


def test_the_stored_plan_wins_over_another_unit_size_and_over_other_files(lake: Lake) -> None:
    reader = Sized(sizes=(5000, 5000))
    first = stored_unit_plan(lake.objects, "key", reader, Manifest.of(reader), 1024)
    assert len(first.units) == 10
    other = Sized(sizes=(9000,))
    assert stored_unit_plan(lake.objects, "key", other, Manifest.of(other), 4096) == first
    assert len(stored_unit_plan(lake.objects, "key2", reader, Manifest.of(reader), 4096).units) == 4


def test_who_loses_the_race_to_store_takes_the_winners_plan(lake: Lake) -> None:
    reader, mine = Sized(sizes=(5000,)), Sized(sizes=(5000,))

    class Slow(Sized):
        def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
            stored_unit_plan(lake.objects, "key", mine, Manifest.of(mine), 1024)  # another process is faster
            return DOCUMENT

    late = stored_unit_plan(lake.objects, "key", Slow(sizes=(5000,)), Manifest.of(reader), 4096)
    assert len(late.units) == 5


def run_plan(**given: object) -> RunPlan:
    plan = RunPlan(
        run="0123abcd",
        spec={"pipeline": "p", "steps": [{"op": "x", "n": 1}]},
        segment_keys=("k0", "k1"),
        schemas=("s0", "s1"),
        step_digests=("d0",),
        input_digest="i",
        source_key="p:1",
        search_path=("/a",),
        base_version=3,
        fresh="because",
    )
    return dataclasses.replace(plan, **given)  # type: ignore[arg-type]


def test_a_run_plan_survives_json() -> None:
    plan = run_plan()
    assert plan.created_at
    assert RunPlan.from_json(plan.to_json()) == plan


def test_a_run_is_found_by_the_beginning_of_its_id(lake: Lake) -> None:
    for run in ("0123abcd", "0456abcd", "0456beef"):
        lake.objects.put(run_plan_key(run), run_plan(run=run).to_json())
    lake.objects.put("runs/0123abcd/segment-0/units/0000000.0.json", b"{}")
    assert load_run_plan(lake.objects, "0456abcd").run == "0456abcd"
    assert load_run_plan(lake.objects, "012").run == "0123abcd"
    with pytest.raises(DatasetNotFound, match=r"run 0456: prefix is ambiguous: 0456abcd, 0456beef; give more"):
        load_run_plan(lake.objects, "0456")
    with pytest.raises(DatasetNotFound, match=r"runs here: 0123abcd, 0456abcd, 0456beef$"):
        load_run_plan(lake.objects, "9")


def test_a_lake_without_runs_says_so(lake: Lake) -> None:
    with pytest.raises(DatasetNotFound, match="runs here: none yet"):
        load_run_plan(lake.objects, "0")


def test_a_schema_survives_text_exactly() -> None:
    fields = [pa.field("id", pa.string(), nullable=False, metadata={"k": "v"}), pa.field("x", pa.list_(pa.int8()))]
    schema = pa.schema(fields, metadata={"m": "n"})
    assert schema_from_text(schema_to_text(schema)).equals(schema, check_metadata=True)


def test_the_size_of_a_unit_is_that_of_its_parts() -> None:
    file = InputFile("a", "/in", 10, "m")
    assert Unit(0, (InputPart(file, 0, 4, 4), InputPart(file, 4, 10, 6))).size_bytes == 10
