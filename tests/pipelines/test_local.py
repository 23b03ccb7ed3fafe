"""The executor of this process: every unit once, each thread its own worker, the first error stops the rest."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headrace.errors import DataError
from headrace.pipelines import local
from headrace.pipelines.local import run_local
from headrace.pipelines.records import UnitRecord
from tests.pipelines.plain import Shout, segment_task


class Scripted:
    """Stands in for a worker: unit descriptions are numbers; `bad` ones raise."""

    made: list[Scripted]
    bad: set[str]
    started: list[str]
    gate: threading.Barrier | None

    def __init__(self, task: Any) -> None:
        self.threads: set[int] = set()
        Scripted.made.append(self)

    def run_unit(self, description: str) -> UnitRecord:
        self.threads.add(threading.get_ident())
        Scripted.started.append(description)
        if Scripted.gate is not None:
            Scripted.gate.wait(60)
        if description in Scripted.bad:
            raise DataError(f"unit {description}")
        return UnitRecord(int(description), 0, 0, 0, {}, {}, {})


@pytest.fixture(autouse=True)
def _scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    Scripted.made, Scripted.bad, Scripted.started, Scripted.gate = [], set(), [], None
    monkeypatch.setattr(local, "Worker", Scripted)


def numbers(count: int) -> list[str]:
    return [str(n) for n in range(count)]


@pytest.mark.parametrize("cpus", [1, 2, 7])
def test_every_unit_runs_once_and_is_told_in_the_callers_thread(cpus: int) -> None:
    done: list[int] = []
    threads: set[int] = set()

    def on_record(record: UnitRecord) -> None:
        done.append(record.unit)
        threads.add(threading.get_ident())

    run_local(segment_task(Shout()), numbers(20), cpus, on_record)
    assert sorted(done) == list(range(20))
    assert sorted(Scripted.started, key=int) == numbers(20)
    assert threads == {threading.get_ident()}
    assert len(Scripted.made) <= cpus
    assert all(len(worker.threads) == 1 for worker in Scripted.made)


def test_units_run_side_by_side() -> None:
    Scripted.gate = threading.Barrier(3)  # none comes through alone
    done: list[int] = []
    run_local(segment_task(Shout()), numbers(3), 3, lambda record: done.append(record.unit))
    assert sorted(done) == [0, 1, 2]


def test_more_threads_than_units_are_not_started() -> None:
    run_local(segment_task(Shout()), numbers(1), 8, lambda record: None)
    assert len(Scripted.made) == 1


def test_the_first_error_stops_the_rest() -> None:
    Scripted.bad = {"3"}
    done: list[int] = []
    with pytest.raises(DataError, match="unit 3"):
        run_local(segment_task(Shout()), numbers(500), 2, lambda record: done.append(record.unit))
    assert len(Scripted.started) <= 8  # what was in flight or next
    assert set(done) <= set(range(8)) - {3}


def test_an_interrupt_starts_nothing_more_and_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Slow(Scripted):
        def run_unit(self, description: str) -> UnitRecord:
            if description != "0":
                release.wait(60)
            return super().run_unit(description)

    def on_record(record: UnitRecord) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "Worker", Slow)
    with pytest.raises(KeyboardInterrupt):
        run_local(segment_task(Shout()), numbers(500), 2, on_record)
    assert not release.is_set()  # it came back while a unit was still running
    release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("headrace-unit"):
            thread.join(60)
    assert len(Scripted.started) <= 4
