"""Planning: what names a run, when it is published already, and what stops before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import DataError, SpecError
from headrace.operators.shapes import Global, Map, MapFunction, Selection
from headrace.pipelines.plan import load_run_plan
from headrace.pipelines.prepare import Prepared, Standing, output_schema, prepare, restore_prepared
from headrace.pipelines.run import run
from headrace.pipelines.spec import Gates
from headrace.storage.lake import Lake
from headrace.storage.open import open_version
from tests.pipelines.plain import AddColumn, FirstOfText, Lawless, Shout, lines_pipeline, write_lines


class Careless(Map):
    """Does something to empty tables that only `how` knows."""

    how: str

    def build(self) -> MapFunction:
        broken: dict[str, Callable[[pa.Table], pa.Table]] = {
            "first row": lambda table: table.set_column(1, "text", [[table["text"][0]] * table.num_rows]),
            "no id": lambda table: table.drop_columns(["id"]),
            "no type": lambda table: table.append_column("n", pa.array([len(t) for t in table["text"].to_pylist()])),
            "odd verdict": lambda table: table.append_column("_verdict", pa.nulls(table.num_rows, pa.string())),
        }
        return broken[self.how]


class Unbuildable(Map):
    """Finds no model."""

    def build(self) -> MapFunction:
        raise RuntimeError("no model file")


class UnbuildableKeys(Global):
    """Finds no model either."""

    def build(self) -> MapFunction:
        raise RuntimeError("no model file")

    def select(self, keys: pa.Table) -> Selection:
        raise NotImplementedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "in", a=["one", "two"], b=["one"])


def planned(lake: Lake, folder: Path, *steps: Any, **given: Any) -> Prepared:
    found = prepare(lines_pipeline(folder, *steps, **given), lake)
    assert isinstance(found, Prepared)
    return found


def test_the_plan_is_stored_and_says_everything(lake: Lake, folder: Path) -> None:
    prepared = planned(lake, folder, FirstOfText(), AddColumn(name="score"))
    plan = load_run_plan(lake.objects, prepared.plan.run)
    assert plan == prepared.plan
    assert plan.spec == prepared.pipeline.to_mapping()
    assert plan.segment_keys == tuple(segment.key for segment in prepared.segments)
    assert output_schema(plan, 1).names == [*output_schema(plan, 0).names, "score"]
    assert plan.base_version == 1
    again = restore_prepared(lake, prepared.pipeline, plan)
    assert (again.plan, again.units, again.segments) == (prepared.plan, prepared.units, prepared.segments)


@pytest.mark.parametrize(
    ("given", "steps", "is_same"),
    [
        ({}, (Shout(),), True),
        ({"unit_bytes": 1 << 20, "channel": "prod", "gates": Gates(min_rows=1)}, (Shout(),), True),
        ({"output": "other"}, (Shout(),), False),
        ({"pipeline": "other"}, (Shout(),), False),
        ({"write": "append"}, (Shout(),), False),
        ({"rejects": "coordinates"}, (Shout(),), False),
        ({}, (Shout(mark="?"),), False),
        ({}, (), False),
    ],
)
def test_what_decides_the_rows_names_the_run(
    lake: Lake, folder: Path, given: dict[str, Any], steps: tuple[Any, ...], is_same: bool
) -> None:
    first = planned(lake, folder, Shout())
    other = planned(lake, folder, *steps, **given)
    assert (other.plan.run == first.plan.run) == is_same
    write_lines(folder, c=["three"])
    assert planned(lake, folder, Shout()).plan.run != first.plan.run


def test_published_work_is_not_planned_again_and_says_what_it_compared(lake: Lake, folder: Path) -> None:
    done = run(lines_pipeline(folder, Shout()), lake=lake, engine="local")
    found = prepare(lines_pipeline(folder, Shout()), lake)
    assert isinstance(found, Standing)
    assert (found.run, found.version) == (done.run, done.version)
    assert list(found.compared) == [
        "input",
        "steps[0] tests.pipelines.plain:Lines",
        "steps[1] tests.pipelines.plain:Shout",
    ]
    assert found.compared["input"].startswith("2 files, 12 bytes, digest ")
    fresh = prepare(lines_pipeline(folder, Shout()), lake, fresh="because")
    assert isinstance(fresh, Prepared)
    assert fresh.plan.run != done.run
    assert fresh.plan.fresh == "because"


def test_work_that_was_replaced_is_done_again_as_the_next_generation(lake: Lake, folder: Path) -> None:
    marks = ["!", "?", "!", "?", "!"]
    runs = [run(lines_pipeline(folder, Shout(mark=mark)), lake=lake, engine="local") for mark in marks]
    assert [done.status for done in runs] == ["published"] * 5
    first, second = runs[0].run, runs[1].run
    assert [done.run for done in runs] == [first, second, f"{first}-2", f"{second}-2", f"{first}-3"]
    assert sorted(open_version(lake, "out").to_table()["text"].to_pylist()) == ["ONE!", "ONE!", "TWO!"]


def test_work_done_afresh_answers_the_next_plain_run(lake: Lake, folder: Path) -> None:
    spec = lines_pipeline(folder, Shout())
    first = run(spec, lake=lake, engine="local")
    fresh = run(spec, lake=lake, engine="local", fresh="to see")
    assert (first.run, fresh.run) == (first.run, f"{first.run}-2")
    again = run(spec, lake=lake, engine="local")
    assert (again.status, again.run, again.version) == ("already published", fresh.run, fresh.version)
    once_more = run(spec, lake=lake, engine="local", fresh="to see")
    assert (once_more.status, once_more.run) == ("published", f"{first.run}-3")
    assert open_version(lake, "out").count_rows() == 3


def test_a_fresh_run_that_was_stopped_is_continued_by_its_own_name_only(lake: Lake, folder: Path) -> None:
    spec = lines_pipeline(folder, Shout())
    stopped = prepare(spec, lake, fresh="because")
    plain = prepare(spec, lake)  # nothing is published: whoever plans the same work goes on with what is stored
    another = prepare(spec, lake, fresh="because")
    assert isinstance(stopped, Prepared)
    assert isinstance(plain, Prepared)
    assert isinstance(another, Prepared)
    assert plain.plan == stopped.plan
    assert plain.segments[0].key == stopped.segments[0].key
    assert another.plan.run != stopped.plan.run
    assert another.segments[0].key != stopped.segments[0].key


@pytest.mark.parametrize("is_key", [False, True])
def test_an_operator_that_cannot_be_built_is_told_with_its_place(lake: Lake, folder: Path, is_key: bool) -> None:
    step: Any = UnbuildableKeys() if is_key else Unbuildable()
    with pytest.raises(DataError, match=r"steps\[2\] \(.*Unbuildable.*\), build\(\): got RuntimeError: no model file"):
        prepare(lines_pipeline(folder, Shout(), step), lake)


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (
            Careless(how="first row"),
            r"steps\[2\] \(tests\.pipelines\.test_prepare:Careless\): got IndexError.*empty table",
        ),
        (Careless(how="no id"), r"steps\[2\] .*: got no column id"),
        (Careless(how="no type"), r"steps\[2\] .*, column 'n': got no type where there are no rows; .*pa\.int64\(\)"),
        (Careless(how="odd verdict"), r"steps\[2\] .*, column '_verdict': got string; a verdict is a struct"),
        (Lawless(how="unknown"), None),
    ],
)
def test_a_step_that_cannot_take_an_empty_table_stops_before_a_target_is_made(
    lake: Lake, folder: Path, step: Any, told: str | None
) -> None:
    spec = lines_pipeline(folder, Shout(), step)
    if told is None:
        assert isinstance(prepare(spec, lake), Prepared)
        return
    with pytest.raises(DataError, match=told):
        prepare(spec, lake)
    assert lake.names() == []


def test_a_column_that_a_step_misses_is_told_with_the_steps_place(lake: Lake, folder: Path) -> None:
    from headrace.operators.text.length import Length

    with pytest.raises(DataError, match=r"steps\[1\] \(text\.length\): .*body"):
        prepare(lines_pipeline(folder, Length(column="body", min_chars=1)), lake)


def test_too_many_generations_are_told(lake: Lake, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.pipelines import prepare as module

    monkeypatch.setattr(module, "MAX_GENERATIONS", 2)
    for mark in ("!", "?"):
        run(lines_pipeline(folder, Shout(mark=mark)), lake=lake, engine="local")
    with pytest.raises(SpecError, match="the same work was done too often"):
        prepare(lines_pipeline(folder, Shout()), lake)
