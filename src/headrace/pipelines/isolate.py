"""Run a unit that keeps killing its worker in child processes, and find the rows that do it.

The child works through slices and leaves a result for each; where it dies, the slice without a result is to blame and
is cut again, until one row stands alone.  That row goes to quarantine with the step and the way the child ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from headrace import errors
from headrace.errors import HeadraceError, InternalError
from headrace.operators.shapes import READ_ERRORS
from headrace.pipelines import chain
from headrace.pipelines.describe import describe_unit, unit_of
from headrace.pipelines.envelope import seal, unseal
from headrace.pipelines.plan import Unit, schema_from_text
from headrace.pipelines.steps import StepCount, quarantine_read_errors, quarantine_rows
from headrace.pipelines.tables import table_from_bytes, table_to_bytes
from headrace.pipelines.task import SegmentTask, StepTask, build_reader, build_steps, extend_search_path

SLICES = 16
READY = "ready"  # a child's mark that imports and builds are behind it


def isolated_read(task: SegmentTask, unit: Unit) -> chain.UnitState:
    """Read each part in a child; a part whose reading kills the child is one row of the quarantine."""
    state: chain.UnitState | None = None
    for part in unit.parts:
        (found,), how = _child("read", task, [describe_unit(Unit(unit.number, (part,)))])
        if found is None:
            error = f"reading rows {part.start} to {part.stop} of this part killed the worker ({how})"
            row = {"id": f"{part.file.path}:{part.start}", "source_file": part.file.path, "source_offset": part.start}
            unread = pa.Table.from_pylist([{**row, "error": error}], schema=READ_ERRORS)
            schema = schema_from_text(task.input_schema)
            lost = quarantine_read_errors(unread, task.source, task.run)
            found = chain.UnitState(unit.number, schema.empty_table(), quarantine=lost, read_errors=1)
            found.counts[task.source.index] = StepCount(1, 0, quarantined=1)
        state = found if state is None else _join(state, found)
    assert state is not None
    return state


def isolated_stage(task: SegmentTask, stage: int, state: chain.UnitState) -> chain.UnitState:
    """Run one stage in children, row range by row range."""
    steps = task.stages[stage]
    before = chain.UnitState(
        state.unit, state.kept.slice(0, 0), state.rejects, state.quarantine, dict(state.counts), state.rows_read,
        state.read_errors, state.bytes_read, state.started,
    )  # fmt: skip
    done = before
    for found in _range(task, steps, state.kept):
        done = _join(done, found)
    if not steps:
        done.kept = state.kept
    for step in steps:
        done.counts.setdefault(step.index, StepCount())
    if done.kept.num_rows == 0 and steps:
        done.kept = chain.run_stage(
            chain.UnitState(state.unit, state.kept.slice(0, 0)), build_steps(steps), task.run
        ).kept
    return done


def _range(task: SegmentTask, steps: tuple[StepTask, ...], table: pa.Table) -> list[chain.UnitState]:
    waiting, finished = _slices(table), list[chain.UnitState]()
    while waiting and steps:
        found, how = _child("stage", task, waiting, steps)
        for result in found:
            if result is None:
                break
            finished.append(result)
            waiting.pop(0)
        if waiting:
            blamed = waiting.pop(0)
            finished += _blame(task, steps, blamed, how) if blamed.num_rows == 1 else _range(task, steps, blamed)
    return finished


def _blame(task: SegmentTask, steps: tuple[StepTask, ...], row: pa.Table, how: str) -> list[chain.UnitState]:
    """One row that kills the child: run it step by step to name the step."""
    state = chain.UnitState(0, row)
    for step in steps:
        (found,), ended = _child("stage", task, [state.kept], (step,))
        if found is None:
            error = f"killed the worker ({ended}) on each of {len(steps) + 1} tries alone"
            state.quarantine = pa.concat_tables(
                [state.quarantine, quarantine_rows(state.kept, step, task.run, [(0, error)])]
            )
            state.counts[step.index] = StepCount(1, 0, quarantined=1)
            state.kept = state.kept.slice(0, 0)
            return [state]
        state = _join(chain.UnitState(0, found.kept.slice(0, 0), state.rejects, state.quarantine, state.counts), found)
        if state.kept.num_rows == 0:
            return [state]
    return [state]  # alone it went through


def _slices(table: pa.Table) -> list[pa.Table]:
    size = max(1, -(-table.num_rows // SLICES))
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def _join(first: chain.UnitState, second: chain.UnitState) -> chain.UnitState:
    kept = [t for t in (first.kept, second.kept) if t.num_rows] or [second.kept]
    counts = {index: StepCount() for index in sorted({*first.counts, *second.counts})}
    for index, total in counts.items():
        for state in (first, second):
            if index in state.counts:
                total.add(state.counts[index])
    return chain.UnitState(
        first.unit,
        pa.concat_tables(kept),
        pa.concat_tables([first.rejects, second.rejects]),
        pa.concat_tables([first.quarantine, second.quarantine]),
        counts,
        first.rows_read + second.rows_read,
        first.read_errors + second.read_errors,
        first.bytes_read + second.bytes_read,
        first.started,
    )


def _child(
    mode: str, task: SegmentTask, inputs: list[str] | list[pa.Table], steps: tuple[StepTask, ...] = ()
) -> tuple[list[chain.UnitState | None], str]:
    """Results of the inputs that a child finished, None for the rest, and how it ended."""
    with tempfile.TemporaryDirectory(prefix="headrace-isolated-") as name:
        folder = Path(name)
        wanted = {"mode": mode, "task": task.to_json(), "steps": [step.index for step in steps], "inputs": len(inputs)}
        (folder / "order.json").write_text(json.dumps(wanted), encoding="utf-8")
        for number, given in enumerate(inputs):
            body = given.encode() if isinstance(given, str) else table_to_bytes(given)
            (folder / f"{number}.in").write_bytes(body)
        done = subprocess.run(
            [sys.executable, "-m", "headrace.pipelines.isolate", name],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if (told := folder / "error.json").exists():
            raise _error(json.loads(told.read_text(encoding="utf-8")))
        how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        if not (folder / READY).exists():
            rule = "a child must come to its first row: imports and build() are no row's fault"
            raise InternalError(f"isolated {mode} of {task.source.op}", how, rule, "see what it wrote to stderr")
        results: list[chain.UnitState | None] = []
        for number in range(len(inputs)):
            path = folder / f"{number}.out"
            results.append(unseal(table_from_bytes(path.read_bytes())) if path.exists() else None)
    return results, how


def _main(folder: Path) -> None:
    wanted = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    task = SegmentTask.from_json(wanted["task"])
    extend_search_path(task.search_path)
    chosen = tuple(step for stage in task.stages for step in stage if step.index in wanted["steps"])
    steps = build_steps(chosen)
    read = build_reader(task.source) if wanted["mode"] == "read" else None
    (folder / READY).touch()
    for number in range(wanted["inputs"]):
        body = (folder / f"{number}.in").read_bytes()
        if read is not None:
            state = chain.read_unit(task, read, unit_of(body.decode()))
        else:
            state = chain.run_stage(chain.UnitState(0, table_from_bytes(body)), steps, task.run)
        partial = folder / f"{number}.partial"
        partial.write_bytes(table_to_bytes(seal(state)))
        partial.rename(folder / f"{number}.out")  # whole or not there


def _error(told: dict[str, str]) -> HeadraceError:
    kind = getattr(errors, told.pop("kind"), errors.InternalError)
    found: HeadraceError = kind(**told)
    return found


if __name__ == "__main__":
    try:
        _main(Path(sys.argv[1]))
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it; only a death counts against rows
        known = isinstance(error, HeadraceError)
        parts = vars(error) if known else {"place": "isolated child", "got": f"{type(error).__name__}: {error}"}
        body = {"kind": type(error).__name__ if known else "InternalError", **parts}
        (Path(sys.argv[1]) / "error.json").write_text(json.dumps(body), encoding="utf-8")
        sys.exit(1)
