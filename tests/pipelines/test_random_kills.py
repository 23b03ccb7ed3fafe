"""Killed at random times, again and again, and started with another number of CPUs each time: the same dataset."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.pipelines.corpus import Doc, Expected, expect, make_docs, write_docs
from tests.pipelines.driving import Ended, Site, Zygote, check_published, make_site, steps

SLOW = {"op": "tests.pipelines.operators:Slow", "seconds_per_row": 0.004}
KILLS_PER_RUN = 5
"""After so many a run may end in peace, else it would never: units that were killed thrice run in children, slowly."""


def _expected(docs: list[Doc]) -> Expected:
    return expect(docs, between=1)


def _slow_site(folder: Path, forks: Zygote, seed: int) -> Site:
    return make_site(folder, forks, make_docs(seed), steps(SLOW))


def _kill_until_done(site: Site, rng: random.Random, seconds: float) -> tuple[Ended, int]:
    """Kill the whole process group at random times within the length of an undisturbed run; then let it end."""
    kills = 0
    for _ in range(KILLS_PER_RUN):
        ended = site.run(cpus=rng.choice([1, 2, 3]), kill_after=rng.uniform(0.05, 1.0) * seconds)
        if not ended.was_killed:
            assert ended.exit == 0, ended
            return ended, kills
        kills += 1
    return site.run(cpus=rng.choice([1, 2, 3])), kills


def _many_kills(folder: Path, forks: Zygote, seed: int, wanted: int) -> None:
    rng, kills, runs = random.Random(seed), 0, 0
    undisturbed = _slow_site(folder / "undisturbed", forks, seed)
    started = time.monotonic()
    check_published(undisturbed, undisturbed.run(cpus=2), _expected(make_docs(seed)))
    seconds = time.monotonic() - started
    while kills < wanted:
        runs += 1
        docs = make_docs(seed * 1000 + runs)
        site = _slow_site(folder / str(runs), forks, seed * 1000 + runs)
        ended, more = _kill_until_done(site, rng, seconds)
        kills += more
        check_published(site, ended, _expected(docs))
        assert site.run().status == "already published"


@pytest.mark.timeout(600)
def test_fifty_kills(tmp_path: Path, forks: Zygote) -> None:
    _many_kills(tmp_path, forks, seed=1, wanted=50)


@pytest.fixture
def no_ray_left() -> Iterator[set[int]]:
    """Processes of killed drivers' Rays; those that don't end by themselves are ended."""
    left: set[int] = set()
    yield left
    alive = [psutil.Process(pid) for pid in left if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(alive, timeout=20)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=20)


RAY_SLOW = {"op": "tests.pipelines.operators:SlowSmall", "seconds_per_row": 0.03}


def _records(site: Site) -> int:
    first, last = site.finished_units()
    return len(first) + len(last)


def _kill_ray_driver(site: Site, cpus: int, records: int, seconds: float) -> Ended:
    """Kill it with its process group, some time after there were so many unit records."""
    started = site.start(engine="ray", cpus=cpus)
    until = time.monotonic() + 60
    while _records(site) < records and time.monotonic() < until and psutil.pid_exists(started.pids[0]):
        time.sleep(0.02)
    time.sleep(seconds)
    return started.kill()


def _ray_kills(site: Site, rng: random.Random, kills: list[int], left: set[int]) -> None:
    docs = make_docs(rng.randrange(1000))
    write_docs(site.input, docs)
    site.write_pipeline(steps(RAY_SLOW))
    finished = 0
    for records in kills:
        ended = _kill_ray_driver(site, rng.choice([1, 2, 3]), records, rng.uniform(0, 0.6))
        left.update(ended.left)
        assert ended.was_killed or ended.status == "published"
        finished = max(finished, _records(site))
    ended = site.run(engine="ray", cpus=rng.choice([1, 2, 3]))
    check_published(site, ended, _expected(docs))
    assert len(ended.units) <= 12 - finished
    assert site.verify(ended.run) == []


@pytest.mark.integration
def test_a_killed_driver_of_ray(site: Site, no_ray_left: set[int]) -> None:
    _ray_kills(site, random.Random(11), [2, 8], no_ray_left)


@pytest.mark.integration
def test_a_killed_worker_of_ray(site: Site, docs: list[Doc]) -> None:
    """Killed in the middle of a unit, twice; Ray starts another and the unit is done again."""
    site.write_pipeline(steps({**RAY_SLOW, "seconds_per_row": 0.06}))
    started = site.start(engine="ray", cpus=2)
    killed: set[int] = set()
    until = time.monotonic() + 60
    while len(killed) < 2 and time.monotonic() < until:
        time.sleep(0.05)
        if not any("/attempts/" in str(path) for path in site.objects("work")):
            continue  # a worker that is still importing is killed for nothing
        for child in psutil.Process(started.pids[0]).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.pid not in killed and len(killed) < 2 and "MapBatches" in " ".join(child.cmdline()):
                    child.kill()
                    killed.add(child.pid)
    ended = started.end()
    assert len(killed) == 2
    check_published(site, ended, _expected(docs))
    assert any(int(path.name) > 1 for path in site.objects("work") if "/attempts/" in str(path))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_two_hundred_kills(tmp_path: Path, forks: Zygote, seed: int) -> None:
    _many_kills(tmp_path, forks, seed=seed, wanted=50)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(12, 17))
def test_many_killed_drivers_of_ray(site: Site, no_ray_left: set[int], seed: int) -> None:
    rng = random.Random(seed)
    _ray_kills(site, rng, sorted(rng.choices(range(12), k=4)), no_ray_left)
