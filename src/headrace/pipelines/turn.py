"""Whose turn it is: a second process with the same run waits for the first, and takes over when that one is gone.

The lease only saves doing things twice.  Nothing is wrong where two coordinators work at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.pipelines.progress import Progress
from headrace.storage.lake import Lake
from headrace.storage.lease import Lease

TTL_SECONDS = 10.0
POLL_SECONDS = 0.2


@contextmanager
def take_turn(lake: Lake, run: str, tell: Progress) -> Iterator[None]:
    """Hold the run's lease; wait while a living process has it."""
    told = False
    while True:
        lease = Lease.acquire(lake.objects, f"run-{run}", TTL_SECONDS)
        if lease is not None:
            break
        if not told:
            tell.warn(f"another process works on run {run}; waiting for it")
            told = True
        time.sleep(POLL_SECONDS)
    with lease:
        yield
