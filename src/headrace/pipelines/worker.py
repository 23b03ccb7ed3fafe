"""A worker's side of a segment: functions built once, then units one after the other."""

from __future__ import annotations

import json
from functools import lru_cache

from headrace.errors import DataError, HeadraceError
from headrace.pipelines import chain
from headrace.pipelines.describe import unit_of
from headrace.pipelines.isolate import isolated_keys, isolated_read, isolated_stage
from headrace.pipelines.plan import Unit
from headrace.pipelines.records import MAX_ATTEMPTS, UnitRecord, start_attempt
from headrace.pipelines.task import (
    BuiltStep,
    SegmentTask,
    build_keys,
    build_reader,
    build_steps,
    check_code,
    extend_search_path,
)
from headrace.storage.lake import Lake


class Worker:
    """Runs the stages of one segment.  One thread at a time: an operator's function need not be thread-safe."""

    def __init__(self, task: SegmentTask) -> None:
        """Build nothing yet; each stage is built where it first runs."""
        self.task = task
        self.lake = Lake(task.lake)
        extend_search_path(task.search_path)
        self._read = lru_cache(maxsize=1)(lambda: build_reader(task.source))
        self._steps = lru_cache(maxsize=None)(lambda stage: build_steps(task.stages[stage]))
        self._keys = lru_cache(maxsize=1)(lambda: build_keys(task.barrier) if task.barrier else None)
        self._is_isolated = False  # the unit that runs its last stage now

    def run_stage(self, description: str, stage: int, state: chain.UnitState | None) -> chain.UnitState:
        """Run one stage of a unit; the first stage also reads.  A unit that killed its worker before runs isolated."""
        plain = json.loads(description)
        number = start_attempt(self.lake.objects, self.task.work, plain["unit"], stage)
        self._is_isolated = isolated = number > MAX_ATTEMPTS
        if state is None:
            if "record" in plain:
                record = UnitRecord.from_json(self.lake.objects.get(plain["record"]))
                state = chain.load_unit(self.task, self.lake, record)
            elif isolated:
                state = isolated_read(self.task, unit_of(description))
            else:
                state = self._read_unit(unit_of(description))
        if isolated:
            return isolated_stage(self.task, stage, state)
        return chain.run_stage(state, self._steps(stage), self.task.run)

    def _read_unit(self, unit: Unit) -> chain.UnitState:
        try:
            return chain.read_unit(self.task, self._read(), unit)
        except HeadraceError:
            raise
        except Exception as error:
            files = ", ".join(dict.fromkeys(part.file.path for part in unit.parts))
            rule = "a reader gives bad rows as errors and does not raise"
            got = f"{type(error).__name__}: {error}"
            raise DataError(
                f"unit {unit.number} ({files}), {self.task.source.op}", got, rule, "mend the reader or the file"
            ) from error

    def finish(self, state: chain.UnitState) -> UnitRecord:
        """Run the sink, directly after the last stage."""
        barrier, keys = self.task.barrier, None
        state.kept = chain.conform(state, self.task)
        if barrier is not None:
            if self._is_isolated:
                found = isolated_keys(self.task, barrier, state.kept)
            else:
                function = self._keys()
                assert function is not None
                found = chain.keys_of(chain.numbered(state.kept), BuiltStep(barrier, function), self.task.run)
            state, keys = chain.with_keys(state, found)
        return chain.sink_unit(state, self.task, self.lake, keys)

    def run_unit(self, description: str) -> UnitRecord:
        """Run a unit from source to sink."""
        state = None
        for stage in range(len(self.task.stages)):
            state = self.run_stage(description, stage, state)
        assert state is not None
        return self.finish(state)


@lru_cache(maxsize=4)
def worker_of(task_json: str) -> Worker:
    """This process's worker for a task; models are loaded once a process."""
    worker = Worker(SegmentTask.from_json(task_json))
    check_code(worker.task)  # imported by this process, not by the one that planned
    return worker
