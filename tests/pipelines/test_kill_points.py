"""Killed at any boundary between two phases, and started again: the same dataset, no finished unit read again."""

from __future__ import annotations

import pytest

from tests.pipelines.corpus import Doc, expect
from tests.pipelines.driving import Site, check_published, steps
from tests.pipelines.watching import Opens

FILES = 6
POINTS = [
    "plan.after_units",
    "plan.after_run",
    "unit.after_read",
    "unit.after_read:4",
    "unit.before_stage:3",
    "unit.before_stage:9",
    "unit.after_stage:2",
    "unit.after_stage:8",
    "unit.after_record:1",
    "unit.after_record:6",
    "unit.after_record:7",
    "unit.after_record:12",
    "driver.after_unit:3",
    "driver.after_unit:12",
    "driver.before_selection",
    "driver.after_selection",
    "publish.before_quarantine",
    "publish.before_rejects",
    "publish.before_kept",
    *(f"commit.{point}:{nth}" for point in ("after_scan", "before", "after") for nth in (1, 2, 3, 4)),
    "publish.after_kept",
    "publish.after_lineage",
    "publish.after_channel",
]


@pytest.mark.parametrize("point", POINTS)
def test_kill_and_restart(site: Site, docs: list[Doc], point: str) -> None:
    killed = site.run(fault=point)
    assert killed.was_killed, killed
    finished, finished_last = site.finished_units()

    with Opens(site.input) as opens:
        again = site.run(cpus=2, overrides=["unit_bytes=8192"])
        opened = opens.take()
    check_published(site, again, expect(docs))
    names = sorted({doc.file for doc in docs})
    assert len(names) == FILES
    # Planning may open files for a look at their schema; once the plan is stored, only units are read.
    if point != "plan.after_units":
        assert set(opened) == {name for unit, name in enumerate(names) if unit not in finished}
    assert {unit for segment, unit in again.units if segment == 0}.isdisjoint(finished)
    assert {unit for segment, unit in again.units if segment == 1}.isdisjoint(finished_last)

    with Opens(site.input) as opens:
        third = site.run()
        assert not opens.take()
    assert third.status == "already published"
    assert (third.run, third.version) == (again.run, again.version)
    check_published(site, third, expect(docs))


@pytest.mark.parametrize(
    "point",
    [
        "unit.after_record:3",
        "publish.before_kept",
        *(f"commit.{point}:3" for point in ("after_scan", "before", "after")),
        "commit.after:4",
        "publish.after_lineage",
    ],
)
def test_a_run_that_replaces_another_is_killed(site: Site, docs: list[Doc], point: str) -> None:
    first = site.run()
    site.write_pipeline(steps(min_chars=150))
    assert site.run(fault=point).was_killed
    # Until the kept commit the first run's rows stand untouched, and from then on only the new ones.
    is_published = point in {"commit.after:3", "commit.after:4", "publish.after_lineage"}
    now = expect(docs, min_chars=150) if is_published else expect(docs)
    assert sorted((row["id"], row["text"]) for row in site.rows()) == now.kept
    again = site.run(cpus=2)
    check_published(site, again, expect(docs, min_chars=150))
    assert [row["supersedes"] for row in site.lineage()] == [[], [first.run]]
    assert site.verify(again.run) == []


@pytest.mark.parametrize(
    "point", ["unit.after_record:8", "driver.before_selection:2", "driver.after_selection:2", "commit.after:3"]
)
def test_three_segments(site: Site, docs: list[Doc], point: str) -> None:
    """A second global step finds nothing to drop; its segment is killed and continued like the others."""
    site.write_pipeline([*steps(), {"op": "dedup.exact", "normalize": "loose"}, {"op": "text.length", "min_chars": 1}])
    assert site.run(fault=point).was_killed
    finished, _ = site.finished_units()
    with Opens(site.input) as opens:
        again = site.run(cpus=2)
        assert not opens.take()
    check_published(site, again, expect(docs))
    assert len(finished) == FILES
    assert site.verify(again.run) == []


def test_the_corpus_has_every_fate(docs: list[Doc]) -> None:
    expected = expect(docs)
    assert len(expected.kept) > 30
    assert {rule for _, _, rule, _ in expected.rejects} == {"duplicate", "min_chars"}
    assert {step for _, step in expected.quarantine} == {0, 2}
