"""Killed at random times, again and again, and started with another number of CPUs each time: the same dataset."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.pipelines.corpus import Doc, Expected, expect, make_docs
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
