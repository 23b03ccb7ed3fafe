"""A handful of rows through the whole pipeline, in this process; nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from headrace.operators.shapes import READ_ERRORS, SELECTION_SCHEMA, Global
from headrace.pipelines.chain import UnitState, drop_selected, run_stage
from headrace.pipelines.funnel import FunnelStep
from headrace.pipelines.load import load_pipeline
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.segments import segments_of, steps_of
from headrace.pipelines.selection import split_selection
from headrace.pipelines.spec import Pipeline
from headrace.pipelines.steps import StepCount, quarantine_read_errors
from headrace.pipelines.task import StepTask, build_keys, build_reader, build_steps

PREVIEW_PART_BYTES = 1 << 18
RUN = "preview"


@dataclass(frozen=True)
class Preview:
    """What the steps did to the first rows; global steps see only these rows."""

    kept: pa.Table
    rejects: pa.Table
    quarantine: pa.Table
    steps: tuple[FunnelStep, ...]


def preview(spec: Pipeline | str | Path, limit: int = 20, overrides: Iterable[str] = ()) -> Preview:
    """Run the first `limit` rows through all steps.  Raises what planning raises."""
    pipeline = spec if isinstance(spec, Pipeline) else load_pipeline(spec, overrides)
    manifest = Manifest.of(pipeline.reader)
    steps = steps_of(pipeline)
    state = _first_rows(pipeline, manifest, StepTask.of(steps[0]), limit)
    for segment in segments_of(steps, manifest.digest):
        for stage in segment.stages:
            state = run_stage(state, build_steps(tuple(StepTask.of(step) for step in stage.steps)), RUN)
        if segment.barrier is not None:
            assert isinstance(segment.barrier.operator, Global)
            task = StepTask.of(segment.barrier)
            keys = build_keys(task)(state.kept).add_column(0, "id", state.kept["id"])
            dropped = SELECTION_SCHEMA.empty_table()
            if keys.num_rows:
                dropped = segment.barrier.operator.select(keys).dropped.cast(SELECTION_SCHEMA).sort_by("row")
            state = drop_selected(state, split_selection(dropped), task, RUN)
    lines = tuple(FunnelStep(s.index, s.op, state.counts.get(s.index, StepCount())) for s in steps)
    return Preview(state.kept, state.rejects, state.quarantine, lines)


def _first_rows(pipeline: Pipeline, manifest: Manifest, reader: StepTask, limit: int) -> UnitState:
    read, schema = build_reader(reader), pipeline.reader.schema(list(manifest.files))
    rows, errors, wanted = [schema.empty_table()], [READ_ERRORS.empty_table()], limit
    for file in manifest.files:
        for part in pipeline.reader.parts(file, PREVIEW_PART_BYTES):
            for batch in read(part, schema):
                rows.append(batch.rows.slice(0, wanted))
                wanted -= rows[-1].num_rows
                errors.append(batch.errors.slice(0, wanted))
                wanted -= errors[-1].num_rows
                if wanted <= 0:
                    break
            if wanted <= 0:
                break
        if wanted <= 0:
            break
    kept, failed = pa.concat_tables(rows), pa.concat_tables(errors)
    state = UnitState(0, kept, quarantine=quarantine_read_errors(failed, reader, RUN))
    total = kept.num_rows + failed.num_rows
    state.counts[reader.index] = StepCount(total, kept.num_rows, quarantined=failed.num_rows)
    return state
