"""Run a unit that keeps killing its worker in child processes, and find the rows that do it.

A child works through slices; where it dies, the first slice without a result is to blame and is cut again, until one
row stands alone.  That row goes to quarantine with the step and the way the child ended.
"""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from headrace.operators.shapes import READ_ERRORS
from headrace.pipelines.chain import UnitState, keys_of, numbered, run_stage
from headrace.pipelines.children import Children, children_of
from headrace.pipelines.plan import Unit, schema_from_text
from headrace.pipelines.steps import StepCount, quarantine_read_errors, quarantine_rows
from headrace.pipelines.task import BuiltStep, SegmentTask, StepTask, build_keys, build_steps

SLICES = 16


def isolated_read(task: SegmentTask, unit: Unit) -> UnitState:
    """Read each part in a child; a part whose reading kills the child is one row of the quarantine."""
    state: UnitState | None = None
    with children_of(task) as children:
        for part in unit.parts:
            found, how = children.read(Unit(unit.number, (part,)))
            if found is None:
                error = f"reading rows {part.start} to {part.stop} of this part killed the worker ({how})"
                place = {"source_file": part.file.path, "source_offset": part.start}
                row = {"id": f"{part.file.path}:{part.start}", **place, "error": error}
                lost = quarantine_read_errors(pa.Table.from_pylist([row], schema=READ_ERRORS), task.source, task.run)
                schema = schema_from_text(task.input_schema)
                found = UnitState(unit.number, schema.empty_table(), quarantine=lost, read_errors=1)
                found.counts[task.source.index] = StepCount(1, 0, quarantined=1)
            state = found if state is None else _join(state, found)
    assert state is not None
    return state


def isolated_stage(task: SegmentTask, stage: int, state: UnitState) -> UnitState:
    """Run one stage in children, row range by row range."""
    steps = task.stages[stage]
    if not steps:
        return state
    done = dataclasses.replace(state, kept=state.kept.slice(0, 0))
    if state.kept.num_rows:
        with children_of(task) as children:
            for found in _range(children, task.run, steps, state.kept):
                done = _join(done, found)
    for step in steps:
        done.counts.setdefault(step.index, StepCount())
    if done.kept.num_rows == 0:  # the columns that the stage gives
        done.kept = run_stage(UnitState(state.unit, state.kept.slice(0, 0)), build_steps(steps), task.run).kept
    return done


def isolated_keys(task: SegmentTask, barrier: StepTask, table: pa.Table) -> UnitState:
    """Write the keys of a global step in children; the result is that of `chain.keys_of`."""
    empty = numbered(table.slice(0, 0))
    done = keys_of(empty, BuiltStep(barrier, build_keys(barrier)), task.run)
    if table.num_rows:
        with children_of(task) as children:
            for found in _range(children, task.run, (barrier,), numbered(table)):
                if found.kept.num_rows == 0:  # a row that was blamed keeps its own columns
                    found.kept = done.kept.slice(0, 0)
                done = _join(done, found)
    return done


def _range(children: Children, run: str, steps: tuple[StepTask, ...], table: pa.Table) -> list[UnitState]:
    waiting, finished = _slices(table), list[UnitState]()
    while waiting:
        found, how = children.run(steps, waiting)
        results = [result for result in found if result is not None]
        finished += results
        del waiting[: len(results)]
        if waiting:
            blamed = waiting.pop(0)
            alone = blamed.num_rows == 1
            finished += _blame(children, run, steps, blamed, how) if alone else _range(children, run, steps, blamed)
    return finished


def _blame(children: Children, run: str, steps: tuple[StepTask, ...], row: pa.Table, how: str) -> list[UnitState]:
    """One row that kills the child: run it step by step to name the step."""
    state = UnitState(0, row)
    for step in steps:
        (found,), ended = children.run((step,), [state.kept])
        if found is None:
            error = f"killed the worker twice alone ({how}, {ended})"
            lost = quarantine_rows(state.kept, step, run, [(0, error)])
            state.quarantine = pa.concat_tables([state.quarantine, lost])
            state.counts[step.index] = StepCount(1, 0, quarantined=1)
            state.kept = state.kept.slice(0, 0)
            break
        state = _join(dataclasses.replace(state, kept=found.kept.slice(0, 0)), found)
        if state.kept.num_rows == 0:
            break
    return [state]  # where no step killed it, alone it went through


def _slices(table: pa.Table) -> list[pa.Table]:
    size = max(1, -(-table.num_rows // SLICES))
    return [table.slice(first, size) for first in range(0, table.num_rows, size)]


def _join(first: UnitState, second: UnitState) -> UnitState:
    kept = [t for t in (first.kept, second.kept) if t.num_rows] or [second.kept]
    counts = {index: StepCount() for index in sorted({*first.counts, *second.counts})}
    for index, total in counts.items():
        for state in (first, second):
            if index in state.counts:
                total.add(state.counts[index])
    return UnitState(
        first.unit,
        pa.concat_tables(kept),
        pa.concat_tables([first.rejects, second.rejects]),
        pa.concat_tables([first.quarantine, second.quarantine]),
        counts,
        first.rows_read + second.rows_read,
        first.read_errors + second.read_errors,
        first.bytes_read + second.bytes_read,
        first.renamed + second.renamed,
        first.started,
    )
