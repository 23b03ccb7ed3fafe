"""Threads in this process and Ray Data give the same: rows, verdicts, errors, counts and digests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pytest

from headrace.errors import HeadraceError
from headrace.pipelines.load import build
from headrace.pipelines.run import RunResult, run
from headrace.pipelines.verify import verify_run
from headrace.storage.lake import Lake
from tests.pipelines.corpus import REFUSED, UNIT_BYTES, Doc, expect, make_docs, write_docs
from tests.pipelines.driving import steps

pytestmark = pytest.mark.integration

SMALL = {"op": "tests.pipelines.operators:SlowSmall", "seconds_per_row": 0}


@pytest.fixture
def small_blocks(ray_local: None) -> Iterator[None]:
    """Blocks of Ray Data that are smaller than one unit."""
    from ray.data import DataContext

    context = DataContext.get_current()
    before = context.target_max_block_size
    context.target_max_block_size = 1024
    yield
    context.target_max_block_size = before


def _run(folder: Path, engine: Any, listed: list[dict[str, Any]], cpus: int = 2, **head: Any) -> tuple[Lake, RunResult]:
    plain = {"pipeline": "made", "output": "out", "unit_bytes": UNIT_BYTES, **head}
    listed = [{**listed[0], "root": str(folder / "in")}, *listed[1:]]
    lake = Lake.resolve(str(folder / f"lake-{engine}-{cpus}"))
    done = run(build({**plain, "steps": listed}), lake=lake, engine=engine, cpus=cpus)
    assert verify_run(lake, done.run).ok
    return lake, done


def _tables(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """All rows of the three datasets with all their columns, in an order of their own."""
    found = {}
    for name in ("out", "out.rejects", "out.quarantine"):
        rows = lance.dataset(lake.dataset_uri(name)).to_table().to_pylist()
        found[name] = sorted(rows, key=lambda row: sorted((key, str(value)) for key, value in row.items()))
    return found


def _comparable(done: RunResult) -> dict[str, Any]:
    report = dict(done.report)
    for name in ("engine", "cpus", "started_at", "seconds", "packages"):
        report.pop(name)
    return report


@pytest.mark.parametrize("middle", [(), (SMALL,), (SMALL, {"op": "text.length", "max_chars": 400}, SMALL)])
def test_both_executors_agree(tmp_path: Path, ray_local: None, middle: tuple[dict[str, Any], ...]) -> None:
    docs = make_docs(seed=5)
    write_docs(tmp_path / "in", docs)
    (here, first), (there, second) = (_run(tmp_path, engine, steps(*middle)) for engine in ("local", "ray"))
    assert (first.run, first.status, second.status) == (second.run, "published", "published")
    assert _tables(here) == _tables(there)
    assert _comparable(first) == _comparable(second)
    if len(middle) < 2:
        expected = expect(docs, between=len(middle))
        assert sorted((row["id"], row["text"]) for row in _tables(there)["out"]) == expected.kept


def test_units_larger_than_a_block_stay_whole(tmp_path: Path, small_blocks: None) -> None:
    docs = make_docs(seed=6)
    write_docs(tmp_path / "in", docs)
    lake, done = _run(tmp_path, "ray", steps(SMALL), unit_bytes=UNIT_BYTES * 3)
    assert done.report["units"] < 6
    assert sorted((row["id"], row["text"]) for row in _tables(lake)["out"]) == expect(docs, between=1).kept


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_one_raising_row_among_ten_thousand(tmp_path: Path, ray_local: None, engine: str) -> None:
    docs = [Doc("a.jsonl", f"row-{n}", f"a text that is long enough and has the number {n}") for n in range(10_000)]
    docs[6_543] = Doc("a.jsonl", "row-6543", f"here it is: {REFUSED}")
    write_docs(tmp_path / "in", docs)
    lake, _ = _run(tmp_path, engine, steps(), unit_bytes=8 << 20)
    found = _tables(lake)
    assert sorted((row["id"], row["text"]) for row in found["out"]) == expect(docs).kept
    assert len(found["out"]) == 9_999
    (bad,) = found["out.quarantine"]
    assert bad["id"] == "row-6543"
    assert bad["error"] == "ValueError: refused here it is: REFUSEME"
    assert bad["source_file"] == "a.jsonl"
    assert bad["text"] == docs[6_543].text


def test_an_error_that_stops_the_run_is_the_same(tmp_path: Path, ray_local: None) -> None:
    """The class, the place and the words of the error."""
    write_docs(tmp_path / "in", make_docs(seed=7))
    told = []
    for engine in ("local", "ray"):
        with pytest.raises(HeadraceError) as caught:
            _run(tmp_path, engine, steps({"op": "tests.pipelines.plain:Lawless", "how": "fewer rows"}))
        told.append((type(caught.value), caught.value.place, caught.value.rule))
    assert told[0] == told[1]
    assert "Lawless" in told[0][1]


def test_a_run_goes_on_with_the_other_executor(tmp_path: Path, ray_local: None) -> None:
    docs = make_docs(seed=8)
    write_docs(tmp_path / "in", docs)
    listed = steps(SMALL)
    for step in listed:
        step.pop("seconds_per_row", None)
    first = _stopped(tmp_path, listed)
    lake, done = _run(tmp_path, "ray", listed)
    assert sorted((row["id"], row["text"]) for row in _tables(lake)["out"]) == expect(docs, between=1).kept
    assert done.report["units"] == 6
    assert first > 0


def _stopped(folder: Path, listed: list[dict[str, Any]]) -> int:
    """Run locally into the lake of Ray's run until the third unit is done."""
    from headrace.pipelines.progress import Silent
    from headrace.pipelines.records import UnitRecord

    class Stop(Silent):
        done = 0

        def unit_done(self, segment: int, record: UnitRecord) -> None:
            self.done += 1
            if self.done == 3:
                raise KeyboardInterrupt

    plain = {"pipeline": "made", "output": "out", "unit_bytes": UNIT_BYTES}
    listed = [{**listed[0], "root": str(folder / "in")}, *listed[1:]]
    stop = Stop()
    with pytest.raises(KeyboardInterrupt):
        run(build({**plain, "steps": listed}), lake=str(folder / "lake-ray-2"), engine="local", cpus=1, progress=stop)
    return stop.done
