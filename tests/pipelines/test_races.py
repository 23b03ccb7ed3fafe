"""Several processes at once: nothing is published twice, nothing is lost, nothing is mixed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.corpus import Doc, expect, make_docs, write_docs
from tests.pipelines.driving import Site, Zygote, check_published, make_site, steps


def _reading(folder: str, **length: int) -> list[dict[str, Any]]:
    listed = steps(**length)
    return [{**listed[0], "root": folder}, *listed[1:]]


def test_two_pipelines_into_one_output(site: Site, docs: list[Doc]) -> None:
    others = [Doc(f"other-{doc.file}", doc.id and f"z{doc.id}", doc.text) for doc in make_docs(seed=2)]
    write_docs(site.folder / "in2", others)
    site.write_pipeline(_reading("in2"), "q.yaml", pipeline="other")
    first, second = site.together({"cpus": 1}, {"cpus": 2, "spec": "q.yaml"})

    assert (first.status, second.status) == ("published", "published")
    assert site.found(first.run).kept == sorted(expect(docs).kept + expect(others).kept)
    assert site.found(first.run).rejects == expect(docs).rejects
    assert site.found(second.run).rejects == expect(others).rejects
    assert len(site.lineage()) == 2
    # The channel ends at the version that holds the rows of both.
    assert site.channel() == (max(first.version, second.version),) * 2


@pytest.mark.parametrize("point", ["publish.after_kept", "publish.after_lineage"])
def test_a_publication_that_is_overtaken_leaves_the_channel_alone(site: Site, docs: list[Doc], point: str) -> None:
    others = [Doc(f"other-{doc.file}", doc.id and f"z{doc.id}", doc.text) for doc in make_docs(seed=2)]
    write_docs(site.folder / "in2", others)
    site.write_pipeline(_reading("in2"), "q.yaml", pipeline="other")
    marker = str(site.folder / "asleep")
    slow, fast = site.together({"fault": f"{point}=pause 60", "marker": marker}, {"spec": "q.yaml", "after": marker})
    assert (slow.version, fast.version) == (2, 3)
    assert site.channel() == (3, 3)
    assert [row["run"] for row in site.lineage()] == [slow.run, fast.run]


def test_told_again_an_older_run_leaves_the_channel_where_it_is(site: Site) -> None:
    write_docs(site.folder / "in2", make_docs(seed=2, files=1))
    site.write_pipeline(_reading("in2"), "q.yaml", pipeline="other")
    first, second = site.run(), site.run(spec="q.yaml")
    assert second.version > first.version
    assert site.run().status == "already published"
    assert site.channel() == (second.version, second.version)


def test_changed_parameters_at_once(site: Site, docs: list[Doc]) -> None:
    site.write_pipeline(steps(min_chars=200), "q.yaml")
    both = site.together({"cpus": 1}, {"cpus": 1, "spec": "q.yaml"})
    expected = [expect(docs), expect(docs, min_chars=200)]
    assert expected[0].kept != expected[1].kept
    assert [ended.status for ended in both] == ["published", "published"]
    last = 0 if both[0].version > both[1].version else 1
    assert site.found(both[last].run) == expected[last]
    versions = {row["run"]: row for row in site.lineage()}
    assert versions[both[last].run]["supersedes"] == [both[1 - last].run]
    assert site.channel() == (both[last].version, both[last].version)


def test_one_run_in_three_processes(site: Site, docs: list[Doc]) -> None:
    ends = site.together({"cpus": 1}, {"cpus": 2}, {"cpus": 3})
    assert len({(ended.run, ended.version) for ended in ends}) == 1
    assert sorted(ended.status for ended in ends) == ["already published", "already published", "published"]
    check_published(site, ends[0], expect(docs))


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("point", ["after_scan", "before"])
def test_a_coordinator_that_slept_between_scan_and_commit(site: Site, docs: list[Doc], point: str, nth: int) -> None:
    """The first sleeps before its nth commit (quarantine, rejects, kept, lineage); the second does it all meanwhile."""
    marker = site.folder / "asleep"
    stolen = site.folder / "stolen"
    orders: list[dict[str, Any]] = [
        {"fault": f"commit.{point}:{nth}=pause 60", "marker": str(marker)},
        {"cpus": 2, "after": str(marker), "steal": str(stolen)},
    ]
    slow, fast = site.together(*orders)
    assert stolen.exists()
    assert "waiting" not in str(fast.warnings)
    assert slow.run == fast.run
    assert slow.version == fast.version
    check_published(site, slow, expect(docs))
    check_published(site, fast, expect(docs))
    assert fast.status == ("published" if nth < 4 else "already published")


@pytest.mark.parametrize(
    "point", ["unit.after_read:2", "unit.after_stage:2", "unit.after_stage:8", "driver.before_selection"]
)
def test_a_coordinator_that_slept_in_the_middle_of_its_work(site: Site, docs: list[Doc], point: str) -> None:
    """Two of one run work on the same units: the first record of a unit stands, and it names the published files."""
    marker, stolen = str(site.folder / "asleep"), str(site.folder / "stolen")
    slow, fast = site.together(
        {"fault": f"{point}=pause 60", "marker": marker}, {"cpus": 2, "after": marker, "steal": stolen}
    )
    assert fast.status == "published"
    assert (slow.run, slow.version) == (fast.run, fast.version)
    check_published(site, slow, expect(docs))
    assert site.verify(slow.run) == []
    # Whoever replaces these rows finds them by the records.
    site.write_pipeline(steps(min_chars=100))
    check_published(site, site.run(), expect(docs, min_chars=100))


@pytest.mark.parametrize("point", ["unit.before_stage:8", "publish.before_kept", "commit.before:3"])
def test_the_output_gets_a_column_while_a_run_is_going(site: Site, docs: list[Doc], point: str) -> None:
    """Rows that were staged before have null in it."""
    others = [Doc(f"other-{doc.file}", doc.id and f"z{doc.id}", doc.text) for doc in make_docs(seed=2)]
    write_docs(site.folder / "in2", others)
    wider = _reading("in2")
    wider.insert(1, {"op": "tests.pipelines.plain:AddColumn", "name": "more", "kind": "int64"})
    wider.insert(2, {"op": "tests.pipelines.plain:AddColumn", "name": "words", "kind": "string"})
    site.write_pipeline(wider, "q.yaml", pipeline="other")
    marker = str(site.folder / "asleep")
    slow, fast = site.together({"fault": f"{point}=pause 60", "marker": marker}, {"spec": "q.yaml", "after": marker})
    assert (fast.status, slow.status) == ("published", "published")
    rows = site.rows()
    assert sorted((row["id"], row["text"]) for row in rows) == sorted(expect(docs).kept + expect(others).kept)
    assert {row["more"] for row in rows} == {None}
    assert site.verify(slow.run) == site.verify(fast.run) == []


def test_a_new_source_beside_an_old_one_that_is_replaced(tmp_path: Path, forks: Zygote, docs: list[Doc]) -> None:
    """Three at once on one output where rows stand already: same source changed, another source, the same again."""
    site = make_site(tmp_path / "site", forks, docs)
    site.run()
    write_docs(site.folder / "in2", [Doc(d.file, d.id and f"z{d.id}", d.text) for d in make_docs(seed=3)])
    others = [Doc(d.file, d.id and f"z{d.id}", d.text) for d in make_docs(seed=3)]
    site.write_pipeline(steps(min_chars=150), "changed.yaml")
    site.write_pipeline(_reading("in2"), "other.yaml", pipeline="other")
    changed, other = site.together({"spec": "changed.yaml"}, {"spec": "other.yaml", "cpus": 2})
    assert site.found(other.run).kept == sorted(expect(docs, min_chars=150).kept + expect(others).kept)
    assert site.run(spec="changed.yaml").status == "already published"
    shutil.rmtree(site.folder / "in2")
    assert changed.status == "published"
