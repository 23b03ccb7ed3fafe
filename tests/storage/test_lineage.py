from __future__ import annotations

import json
import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from headrace.errors import SpecError
from headrace.storage.commit import publish
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.lineage import (
    LINEAGE,
    QUARANTINE_VERSION,
    REJECTS_VERSION,
    SUPERSEDES,
    LineageRow,
    Publication,
    lineage_of,
    live_runs,
    publications,
    record,
)
from tests.storage.support import NAME, ended, process, staged, target

WHEN = datetime(2026, 12, 1, 10, 30, 15, 123456, tzinfo=UTC)


def row(version: int, run: str, supersedes: Sequence[str] = (), name: str = NAME) -> LineageRow:
    return LineageRow(name, version, run, WHEN, supersedes=tuple(supersedes))


def commit(lake: Lake, run: str, supersedes: Sequence[str] = ()) -> int:
    properties = {SUPERSEDES: json.dumps(list(supersedes)), REJECTS_VERSION: "7", QUARANTINE_VERSION: "8"}
    return publish(lake, NAME, staged(lake, run), run, properties).version


def test_a_row_comes_back_whole(lake: Lake) -> None:
    report = {"inputs": [{"path": "it's", "size_bytes": 3}], "steps": {"a": 1.5}}
    full = LineageRow(NAME, 3, "run", WHEN, "pipeline", "source", ("old", "older"), 4, 5, report)
    record(lake, full)
    assert lineage_of(lake, NAME) == [full]
    assert lineage_of(lake, NAME)[0].published_at.utcoffset() == timedelta(0)


def test_recording_again_changes_nothing(lake: Lake) -> None:
    record(lake, row(2, "first"))
    record(lake, row(2, "again"))
    record(lake, row(3, "other"))
    record(lake, row(2, "again"))
    assert [told.run for told in lineage_of(lake, NAME)] == ["first", "other"]
    assert open_head(lake, LINEAGE).version == 3


def test_recorders_in_a_race_write_one_row(lake: Lake) -> None:
    barrier = threading.Barrier(6)

    def work(version: int) -> None:
        barrier.wait()
        record(lake, row(version, f"run {version}"))

    threads = [threading.Thread(target=work, args=(2 + number % 3,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [told.version for told in lineage_of(lake, NAME)] == [2, 3, 4]


def test_killed_after_its_commit_and_recorded_again(lake: Lake) -> None:
    assert ended(process(record, lake, row(2, "run"), fault="commit.after")) == -signal.SIGKILL
    record(lake, row(2, "run"))
    assert lineage_of(lake, NAME) == [row(2, "run")]


def test_datasets_and_versions_are_kept_apart(lake: Lake) -> None:
    for version, name in ((5, NAME), (2, NAME), (2, "docs"), (3, "docs/python.rejects")):
        record(lake, row(version, "run", name=name))
    assert [told.version for told in lineage_of(lake, NAME)] == [2, 5]
    assert [told.dataset for told in lineage_of(lake, "docs", 2)] == ["docs"]
    assert lineage_of(lake, NAME, 3) == []
    assert lake.names() == []
    with pytest.raises(SpecError, match="dataset name"):
        lineage_of(lake, "docs' OR '1'='1")


def test_live_runs_are_those_nobody_replaced_by_then(lake: Lake) -> None:
    target(lake)
    told = [commit(lake, "a"), commit(lake, "b"), commit(lake, "c", ["a"]), commit(lake, "d", ["c", "b"])]
    assert told == [2, 3, 4, 5]
    expected = [set(), {"a"}, {"a", "b"}, {"b", "c"}, {"d"}]
    assert [live_runs(lake, NAME, version) for version in range(1, 6)] == expected
    record(lake, row(2, "a"))
    record(lake, row(4, "c", ["a"]))  # versions 3 and 5 have no lineage yet, as after a crash
    assert [live_runs(lake, NAME, version) for version in range(1, 6)] == expected


def test_commits_tell_what_the_lineage_does_not(lake: Lake) -> None:
    target(lake)
    commit(lake, "a", ["x"])
    open_head(lake, NAME).delete("id = 'a'")  # maintenance: a version that no run published
    (told,) = publications(lake, NAME, 9)
    assert told == Publication(2, "a", supersedes=("x",), rejects_version=7, quarantine_version=8)


def test_lineage_outlives_the_versions(lake: Lake) -> None:
    target(lake)
    commit(lake, "a")
    record(lake, row(2, "a"))
    commit(lake, "b")
    open_head(lake, NAME).cleanup_old_versions(older_than=timedelta(0))
    assert live_runs(lake, NAME, 3) == {"a", "b"}
