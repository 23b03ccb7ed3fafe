"""The chain of one unit: source -> stages -> sink.  Both executors run exactly these functions.

source  reads the unit's parts, or the scratch of the segment before with the selection applied
stage   runs the map steps of one stage
sink    stages the fragments of all three outputs, or writes scratch, and then puts the unit's one record

1. A unit's outputs become visible only through its record; the first record wins and later attempts' files are orphans.
2. Nothing is returned to the driver but the record.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import DataError, StorageUnavailable
from headrace.operators.shapes import READ_ERRORS, ReadFunction
from headrace.pipelines.identity import id_hashes, rename_repeats
from headrace.pipelines.plan import Unit, schema_from_text
from headrace.pipelines.records import TABLES, UnitRecord, put_record
from headrace.pipelines.selection import UnitSelection, selection_of
from headrace.pipelines.steps import StepCount, apply_keys, apply_step, limit_texts, quarantine_read_errors, reject_rows
from headrace.pipelines.tables import table_from_bytes, table_to_bytes
from headrace.pipelines.target import fit
from headrace.pipelines.task import BuiltStep, SegmentTask, StepTask
from headrace.storage.commit import stage
from headrace.storage.contract import QUARANTINE, REJECTS, contract_of
from headrace.storage.faults import fault
from headrace.storage.lake import Lake

POSITION = "_headrace_position"
"""Column that numbers a unit's rows while its keys are written."""


@dataclass
class UnitState:
    """A unit on its way through the chain."""

    unit: int
    kept: pa.Table
    rejects: pa.Table = field(default_factory=REJECTS.empty_table)
    quarantine: pa.Table = field(default_factory=QUARANTINE.empty_table)
    counts: dict[int, StepCount] = field(default_factory=dict)
    rows_read: int = 0
    read_errors: int = 0
    bytes_read: int = 0
    renamed: int = 0  # rows whose id repeated one that came before
    started: float = field(default_factory=time.time)


def read_unit(task: SegmentTask, read: ReadFunction, unit: Unit) -> UnitState:
    """First segment: read all parts of the unit.  Raises InputChanged where a file is not the planned one."""
    schema = schema_from_text(task.input_schema)
    rows, errors, renamed = [schema.empty_table()], [READ_ERRORS.empty_table()], 0
    for part in unit.parts:
        for batch in read(part, schema):
            rows.append(batch.rows)
            errors.append(batch.errors)
            renamed += batch.renamed_ids
    kept, failed = pa.concat_tables(rows), pa.concat_tables(errors)
    state = UnitState(unit.number, kept, quarantine=quarantine_read_errors(failed, task.source, task.run))
    state.rows_read, state.read_errors = kept.num_rows, failed.num_rows
    state.bytes_read, state.renamed = unit.size_bytes, renamed
    total = kept.num_rows + failed.num_rows
    state.counts[task.source.index] = StepCount(total, kept.num_rows, quarantined=failed.num_rows)
    fault("unit.after_read")
    return state


def load_unit(task: SegmentTask, lake: Lake, record: UnitRecord) -> UnitState:
    """Later segments: the scratch of the segment before, without the rows that its global step dropped."""
    tables = {name: table_from_bytes(_scratch(lake, *record.scratch[name])) for name in TABLES}
    run_of = pa.repeat(task.run, tables["rejects"].num_rows)
    rejects = tables["rejects"].set_column(1, REJECTS.field("run"), run_of)  # scratch may come from an earlier run
    run_of = pa.repeat(task.run, tables["quarantine"].num_rows)
    quarantine = tables["quarantine"].set_column(1, QUARANTINE.field("run"), run_of)
    state = UnitState(record.unit, tables["kept"], rejects, quarantine, dict(record.counts))
    state.rows_read, state.read_errors, state.bytes_read = record.rows_read, record.read_errors, record.bytes_read
    state.renamed = record.renamed
    return drop_selected(state, selection_of(lake, task.previous, record.unit), task.source, task.run)


def _scratch(lake: Lake, place: str, size_bytes: int) -> bytes:
    body = lake.objects.get_or_none(place)
    if body is None or len(body) != size_bytes:
        got = "nothing" if body is None else f"{len(body)} bytes"
        rule = f"{size_bytes} bytes were written, and stay until the run has published"
        raise StorageUnavailable(f"scratch {place}", got, rule, "run again: its unit is done again")
    return body


def drop_selected(state: UnitState, chosen: UnitSelection, step: StepTask, run: str) -> UnitState:
    """Move what a global step dropped to the rejects."""
    table = state.kept
    before = state.counts.get(step.index) or StepCount(table.num_rows, table.num_rows)  # when the keys were written
    count = StepCount(before.rows_in, before.kept - len(chosen.rows), quarantined=before.quarantined)
    for pair in pc.value_counts(pc.struct_field(chosen.verdict, "rule")).to_pylist():
        count.dropped[pair["values"]] += pair["counts"]
    lost = reject_rows(table.take(chosen.rows), chosen.verdict, step, run, chosen.partner)
    stays = np.ones(table.num_rows, np.bool_)
    stays[chosen.rows.to_numpy(zero_copy_only=False)] = False
    state.kept = table.filter(pa.array(stays))
    state.rejects = pa.concat_tables([state.rejects, lost])
    state.counts[step.index] = count
    return state


def run_stage(state: UnitState, steps: tuple[BuiltStep, ...], run: str) -> UnitState:
    """Run one stage's map steps."""
    rejects, quarantine = [state.rejects], [state.quarantine]
    for step in steps:
        result = apply_step(step, state.kept, run)
        state.kept = result.kept
        rejects.append(result.rejects)
        quarantine.append(result.quarantine)
        state.counts[step.task.index] = result.count
    state.rejects, state.quarantine = pa.concat_tables(rejects), pa.concat_tables(quarantine)
    return state


def keys_of(table: pa.Table, step: BuiltStep, run: str) -> UnitState:
    """A state whose kept rows are a global step's keys of the numbered rows, with their numbers."""
    result = apply_keys(step, table.drop_columns([POSITION]), run)
    kept = result.keys.append_column(POSITION, table[POSITION].take(result.rows))
    return UnitState(0, kept, quarantine=result.quarantine, counts={step.task.index: result.count})


def numbered(table: pa.Table) -> pa.Table:
    """The rows with their positions."""
    return table.append_column(POSITION, pa.array(range(table.num_rows), pa.int64()))


def with_keys(state: UnitState, found: UnitState) -> tuple[UnitState, pa.Table]:
    """The state without the rows that have no keys, and the keys with the rows' ids."""
    rows = found.kept[POSITION]
    if len(rows) < state.kept.num_rows:
        state.kept = state.kept.take(rows)
    state.quarantine = pa.concat_tables([state.quarantine, found.quarantine])
    state.counts |= found.counts
    return state, found.kept.drop_columns([POSITION]).add_column(0, "id", state.kept["id"])


def conform(state: UnitState, task: SegmentTask) -> pa.Table:
    """The kept rows in the planned schema.  Raises DataError where a step gave something else than it promised."""
    schema = schema_from_text(task.output_schema)
    names = state.kept.column_names
    if names != schema.names:
        got = f"columns {names}"
        raise DataError(
            f"unit {state.unit}", got, f"planned {schema.names}", "a step's columns must not depend on its rows"
        )
    try:
        return state.kept.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        fix = "a step's column types must not depend on its rows"
        raise DataError(f"unit {state.unit}", str(error), "rows must fit the planned schema", fix) from error


def sink_unit(state: UnitState, task: SegmentTask, lake: Lake, keys: pa.Table | None) -> UnitRecord:
    """Stage or write scratch, then put the unit's record; returns the record that won."""
    kept, renamed = conform(state, task), 0
    if task.is_last:
        kept, renamed = rename_repeats(lake.objects, task.run, state.unit, kept)
    rejects = limit_texts(state.rejects, task.rejects) if task.is_last else state.rejects
    tables = {"kept": kept, "rejects": rejects, "quarantine": state.quarantine}
    rows = {name: table.num_rows for name, table in tables.items()}
    fault("unit.before_stage")
    staged, scratch = {}, {}
    if task.is_last:
        for name, table in tables.items():
            place = target(task.output, name)
            rows_of = fit(table, contract_of(lake, place)) if name == "kept" else table
            staged[name] = tuple(stage(lake, place, rows_of))
        scratch["ids"] = _put(lake, task, state.unit, "ids", id_hashes(kept["id"]))
    else:
        assert keys is not None
        tables["keys"] = keys
        for name, table in tables.items():
            scratch[name] = _put(lake, task, state.unit, name, table_to_bytes(table))
    fault("unit.after_stage")
    steps = (
        task.source,
        *(step for stage_ in task.stages for step in stage_),
        *((task.barrier,) if task.barrier else ()),
    )
    record = UnitRecord(
        unit=state.unit,
        rows_read=state.rows_read,
        read_errors=state.read_errors,
        bytes_read=state.bytes_read,
        counts=state.counts,
        code={step.index: step.digest for step in steps},
        rows=rows,
        staged=staged,
        scratch=scratch,
        renamed=state.renamed + renamed,
        seconds=round(time.time() - state.started, 3),
    )
    won = put_record(lake.objects, task.work, record)
    fault("unit.after_record")
    return won


def _put(lake: Lake, task: SegmentTask, unit: int, name: str, body: bytes) -> tuple[str, int]:
    """A scratch object of its own for every attempt; the record says which one counts."""
    place = f"{task.work}/scratch/{unit:07d}-{name}-{uuid4().hex}"
    lake.objects.put(place, body)
    return place, len(body)


def target(output: str, name: str) -> str:
    """The dataset that one of a unit's three tables goes to."""
    return output if name == "kept" else f"{output}.{name}"
