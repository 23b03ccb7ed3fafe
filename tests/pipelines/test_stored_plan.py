"""The stored plan is followed whatever the settings are now, and what was lost meanwhile is done again."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.pipelines.runs import list_runs, show_run
from headrace.storage.lake import Lake
from tests.pipelines.corpus import UNIT_BYTES, Doc, expect, write_docs
from tests.pipelines.driving import Site, check_published, steps
from tests.pipelines.watching import Opens

FILES = 6


@pytest.mark.parametrize("unit_bytes", [1024, 100_000])
@pytest.mark.parametrize("point", ["driver.after_unit:3", "driver.after_unit:9", "publish.before_kept"])
def test_another_unit_size_follows_the_stored_plan(site: Site, docs: list[Doc], unit_bytes: int, point: str) -> None:
    assert site.run(fault=point).was_killed
    done = site.run(cpus=2, overrides=[f"unit_bytes={unit_bytes}"])
    assert [units for _, units, _ in done.segments] == [FILES, FILES]
    check_published(site, done, expect(docs))
    assert site.run(overrides=["unit_bytes=2048"]).status == "already published"


def test_files_that_are_cut_into_parts_give_the_same_rows(site: Site, docs: list[Doc]) -> None:
    done = site.run(overrides=["unit_bytes=1024"])
    assert done.segments[0][1] > FILES
    check_published(site, done, expect(docs))


def test_one_unit_for_everything_gives_the_same_rows(site: Site, docs: list[Doc]) -> None:
    done = site.run(overrides=[f"unit_bytes={UNIT_BYTES * 100}"])
    assert done.segments[0][1] == 1
    check_published(site, done, expect(docs))


@pytest.mark.parametrize("point", ["driver.after_unit:3", "driver.after_unit:6"])
def test_units_whose_rows_are_all_dropped(site: Site, docs: list[Doc], point: str) -> None:
    bare = {"part-000.jsonl", "part-005.jsonl"}
    short = [Doc(d.file, d.id, f"s {n}" if d.file in bare else d.text) for n, d in enumerate(docs)]
    for path in site.input.iterdir():
        path.unlink()
    write_docs(site.input, short)
    assert site.run(fault=point).was_killed
    check_published(site, site.run(), expect(short))


@pytest.mark.parametrize("fault", ["", "publish.before_kept", "commit.after:3"])
def test_everything_dropped_is_an_empty_version_with_its_columns(site: Site, docs: list[Doc], fault: str) -> None:
    site.write_pipeline(steps(min_chars=10_000))
    if fault:
        assert site.run(fault=fault).was_killed
    done = site.run()
    check_published(site, done, expect(docs, min_chars=10_000))
    assert site.rows() == []
    assert {"id", "text", "source_file"} <= set(site.columns())
    # The same source with rows again replaces the empty contribution, and the other way round.
    site.write_pipeline(steps())
    check_published(site, site.run(), expect(docs))
    site.write_pipeline(steps(min_chars=10_000))
    check_published(site, site.run(), expect(docs, min_chars=10_000))


def test_a_failed_gate_publishes_nothing(site: Site, docs: list[Doc]) -> None:
    first = site.run()
    site.write_pipeline(steps(min_chars=100), gates={"min_rows": 10_000})
    for _ in range(2):
        refused = site.run()
        assert refused.error == "GateFailed"
        assert "min_rows" in refused.text
        assert "10000" in refused.text
        check_published(site, first, expect(docs))
    # The same work with a gate that lets it through: nothing is done again.
    site.write_pipeline(steps(min_chars=100), gates={"min_rows": 1})
    with Opens(site.input) as opens:
        done = site.run()
        assert not opens.take()
    assert done.units == []
    check_published(site, done, expect(docs, min_chars=100))


def test_a_failed_gate_on_a_new_output_leaves_no_rows(site: Site) -> None:
    site.write_pipeline(steps(), gates={"max_drop_frac": 0.01})
    refused = site.run()
    assert refused.error == "GateFailed"
    assert "max_drop_frac" in refused.text
    assert site.rows() == site.rows(".rejects") == site.rows(".quarantine") == []
    assert not site.lineage()
    assert site.channel() == (None, None)
    (run,) = list_runs(Lake(str(site.lake)))
    assert run.run in refused.text  # where to look: the report tells which step dropped the rows
    report = show_run(Lake(str(site.lake)), run.run)["report"]
    assert {gate["gate"]: gate["passed"] for gate in report["gates"]}["max_drop_frac"] is False
    assert report["rows"]["rejects"] == sum(sum(step["dropped"].values()) for step in report["steps"]) > 0


def _staged(site: Site, name: str) -> list[Path]:
    return sorted((site.lake / f"{site.output}{name}.lance" / "data").iterdir())


@pytest.mark.parametrize("how", ["gone", "cut", "empty"])
@pytest.mark.parametrize("name", ["", ".rejects", ".quarantine"])
def test_a_lost_staged_file_is_named_and_its_unit_done_again(site: Site, docs: list[Doc], name: str, how: str) -> None:
    assert site.run(fault="publish.before_quarantine").was_killed
    lost = _staged(site, name)[1]
    if how == "gone":
        lost.unlink()
    else:
        lost.write_bytes(lost.read_bytes()[: 100 if how == "cut" else 0])
    done = site.run()
    assert lost.name in str(done.warnings)
    assert len(done.warnings) == 1
    assert len(done.units) == 1
    check_published(site, done, expect(docs))
    assert site.verify(done.run) == []


def test_a_staged_file_lost_between_two_commits(site: Site, docs: list[Doc]) -> None:
    """Quarantine and rejects are committed already when one of the kept files is lost."""
    assert site.run(fault="publish.before_kept").was_killed
    _staged(site, "")[0].unlink()
    done = site.run()
    assert len(done.warnings) == 1
    check_published(site, done, expect(docs))
    assert site.verify(done.run) == []


@pytest.mark.parametrize("how", ["gone", "cut"])
@pytest.mark.parametrize("table", ["kept", "rejects", "quarantine", "keys"])
@pytest.mark.parametrize("point", ["driver.before_selection", "driver.after_selection", "driver.after_unit:8"])
def test_a_lost_scratch_object_is_named_and_its_unit_done_again(
    site: Site, docs: list[Doc], point: str, table: str, how: str
) -> None:
    assert site.run(fault=point).was_killed
    lost = [path for path in site.objects("work") if f"-{table}-" in path.name][4]
    if how == "gone":
        lost.unlink()
    else:
        lost.write_bytes(lost.read_bytes()[:-50])
    done = site.run()
    if done.warnings:
        assert lost.name in str(done.warnings)
        assert (0, 4) in [tuple(unit) for unit in done.units]
        assert [unit for segment, unit in done.units if segment == 0] == [4]
    else:  # keys are of no use once the selection is stored
        assert table == "keys"
        assert point != "driver.before_selection"
    check_published(site, done, expect(docs))
    assert site.verify(done.run) == []


def test_a_lost_selection_is_made_again(site: Site, docs: list[Doc]) -> None:
    assert site.run(fault="driver.after_unit:8").was_killed
    (selection,) = [path for path in site.objects("work") if path.name == "selection.arrow"]
    selection.unlink()
    check_published(site, site.run(), expect(docs))


def test_fresh_work_replaces_the_old_and_stands(site: Site, docs: list[Doc]) -> None:
    first = site.run()
    with Opens(site.input) as opens:
        fresh = site.run(fresh="the disk was bad")
        assert len(opens.take()) == FILES
    assert fresh.status == "published"
    assert fresh.run != first.run
    check_published(site, fresh, expect(docs))
    assert site.lineage()[-1]["supersedes"] == [first.run]
    # Who asks for the same work without a reason gets the fresh rows, not the ones from before.
    again = site.run()
    assert (again.status, again.run, again.version) == ("already published", fresh.run, fresh.version)


def test_a_killed_fresh_run_is_resumed(site: Site, docs: list[Doc]) -> None:
    first = site.run()
    assert site.run(fresh="once more", fault="driver.after_unit:4").was_killed
    assert site.run().run == first.run
    (run,) = {path.parent.name for path in site.objects("runs") if path.name == "plan.json"} - {first.run}
    done = site.run(resume=run)
    assert done.status == "published"
    assert len(done.units) <= 2 * FILES - 4
    check_published(site, done, expect(docs))
    assert site.run().run == run


def test_a_run_is_resumed_from_another_folder(site: Site, docs: list[Doc]) -> None:
    """Neither the pipeline file nor the working directory is needed any more."""
    assert site.run(fault="driver.after_unit:4").was_killed
    (run,) = {path.parent.name for path in site.objects("runs") if path.name == "plan.json"}
    (site.folder / "p.yaml").unlink()
    done = site.run(resume=run, folder="/")
    check_published(site, done, expect(docs))
    assert site.run(resume=run[:6], folder="/").status == "already published"
