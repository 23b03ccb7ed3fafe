"""The executor of this process: threads over units, each with its own worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from headrace.pipelines.records import UnitRecord
from headrace.pipelines.task import SegmentTask
from headrace.pipelines.worker import Worker


def run_local(
    task: SegmentTask, descriptions: Sequence[str], num_cpus: int, on_record: Callable[[UnitRecord], None]
) -> None:
    """Run the units; the first error stops the rest.  Ctrl-C returns after the units in flight."""
    own = threading.local()

    def one(description: str) -> UnitRecord:
        if not hasattr(own, "worker"):
            own.worker = Worker(task)
        worker: Worker = own.worker
        return worker.run_unit(description)

    threads = max(1, min(num_cpus, len(descriptions)))
    pool = ThreadPoolExecutor(threads, thread_name_prefix="headrace-unit")
    waiting = iter(descriptions)
    running: set[Future[UnitRecord]] = set()
    stopped = False
    try:
        for _ in range(threads + 1):
            if (description := next(waiting, None)) is not None:
                running.add(pool.submit(one, description))
        while running:
            finished, running = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                on_record(future.result())
                if (description := next(waiting, None)) is not None:
                    running.add(pool.submit(one, description))
    except KeyboardInterrupt:
        stopped = True  # units in flight may finish or not: nothing depends on it, and a person waits
        raise
    finally:
        pool.shutdown(wait=not stopped, cancel_futures=True)
