"""The Ray Data executor: one unit is one row, so that no block boundary can lose or join units.

Descriptions go in, one-row tables come out.  Between two stages a unit travels as an envelope: its description and
state, the tables as Arrow IPC in a `large_binary` cell.  The last stage yields a small summary; everything else is in
the lake.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from headrace.errors import HeadraceError, MissingDependency
from headrace.pipelines.envelope import seal, unseal
from headrace.pipelines.records import UnitRecord
from headrace.pipelines.segments import Stage
from headrace.pipelines.task import SegmentTask
from headrace.pipelines.worker import worker_of

OBJECT_STORE_BYTES = 512 << 20


@contextmanager
def ray_session(num_cpus: int, address: str | None = None) -> Iterator[None]:
    """Ray for the length of a run: the one already connected here, a cluster's, or our own, which ends with us."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependency("engine ray", "", "needs Ray Data", "pip install 'headrace[pipelines]'") from error
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": True}
    if address is None:
        options |= {"num_cpus": num_cpus, "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "lance is not fork-safe")  # Ray's children exec at once and never see lance
        ray.init(address=address or "local", **options)
    try:
        yield
    finally:
        ray.shutdown()


def run_ray(
    task: SegmentTask, stages: Sequence[Stage], descriptions: Sequence[str], on_record: Callable[[UnitRecord], None]
) -> None:
    """Run the units on the connected Ray.  Raises the worker's own HeadraceError where a unit stops the run."""
    import ray
    from ray.data import DataContext
    from ray.exceptions import RayError

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.max_errored_blocks = 0
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [pa.table({"unit": pa.array([text], pa.large_string())}) for text in descriptions]
    data = ray.data.from_arrow(rows)
    for number, stage in enumerate(stages):
        data = data.map_batches(
            _stage,
            batch_size=1,
            batch_format="pyarrow",
            zero_copy_batch=True,
            fn_kwargs={"task_json": task.to_json(), "stage": number, "search_path": task.search_path},
            num_cpus=stage.resources.num_cpus,
            num_gpus=stage.resources.num_gpus or None,
        )
    try:
        for batch in data.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            for body in batch["record"].to_pylist():
                on_record(UnitRecord.from_json(body))
    except RayError as error:
        cause = _ours(error)
        if cause is not None:
            raise cause from error
        raise


def _stage(table: pa.Table, task_json: str, stage: int, search_path: tuple[str, ...]) -> Iterator[pa.Table]:
    """One stage on one envelope."""
    for folder in reversed(search_path):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    worker = worker_of(task_json)
    for row in range(table.num_rows):
        description = table["unit"][row].as_py()
        state = unseal(table.slice(row, 1)) if "counts" in table.column_names else None
        state = worker.run_stage(description, stage, state)
        if stage == len(worker.task.stages) - 1:
            yield pa.table({"record": pa.array([worker.finish(state).to_json()], pa.large_binary())})
        else:
            yield seal(state, description)


def _ours(error: BaseException | None) -> HeadraceError | None:
    """The HeadraceError behind Ray's wrappers, of which some are of our class too but can't be made anew."""
    from ray.exceptions import RayError

    while error is not None:
        if isinstance(error, HeadraceError) and not isinstance(error, RayError):
            return type(error)(error.place, error.got, error.rule, error.fix)
        error = getattr(error, "cause", None) or error.__cause__
    return None
