"""Plan a run: name it, find out whether it is published already, else store what it will do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headrace.errors import DataError, HeadraceError, SpecError
from headrace.operators.shapes import VERDICT_COLUMN
from headrace.pipelines.accepted import accepted_changes
from headrace.pipelines.digest import hash_json, hash_text
from headrace.pipelines.manifest import Manifest
from headrace.pipelines.plan import (
    RunPlan,
    UnitPlan,
    own_work,
    run_plan_key,
    schema_from_text,
    schema_to_text,
    stored_unit_plan,
)
from headrace.pipelines.publish import record_lineage
from headrace.pipelines.segments import Segment, Step, segments_of, steps_of
from headrace.pipelines.spec import Pipeline
from headrace.pipelines.steps import call_on_empty
from headrace.pipelines.target import prepare_targets
from headrace.pipelines.task import StepTask, build_keys, build_steps
from headrace.storage.faults import fault
from headrace.storage.head import head_or_none, version_numbers
from headrace.storage.lake import Lake
from headrace.storage.lineage import live, publications

MAX_GENERATIONS = 1000


@dataclass(frozen=True)
class Prepared:
    """Everything that is decided before the first unit runs."""

    lake: Lake
    pipeline: Pipeline
    plan: RunPlan
    steps: tuple[Step, ...]
    segments: tuple[Segment, ...]
    units: UnitPlan
    own_from: int | None = None  # segments from here on are this run's alone, since they run with accepted other code


@dataclass(frozen=True)
class Standing:
    """The same work is published, and its rows are in the head of the output."""

    run: str
    version: int
    compared: dict[str, str]  # what was compared to know it: name -> digest or count


def run_name(pipeline: Pipeline, segments: Sequence[Segment]) -> str:
    """The run's id: where to, and everything that decides the rows."""
    return hash_text(pipeline.output, pipeline.write, pipeline.pipeline, pipeline.rejects, segments[-1].key)[:16]


def prepare(pipeline: Pipeline, lake: Lake, fresh: str = "") -> Prepared | Standing:
    """Plan, or take up the stored plan of the same work.  Touches the lake only where there is work to do."""
    manifest = Manifest.of(pipeline.reader)
    steps = steps_of(pipeline)
    salt = hash_text(fresh, datetime.now(UTC).isoformat()) if fresh else ""
    segments = segments_of(steps, hash_text(manifest.digest, salt))
    run, version = _generation(lake, pipeline, run_name(pipeline, segments))
    if version is not None:
        return Standing(run, version, compared_of(manifest, steps))
    objects = lake.objects
    units = stored_unit_plan(objects, segments[0].key, pipeline.reader, manifest, pipeline.unit_bytes)
    fault("plan.after_units")
    schemas = trace_schemas(segments, units.schema)
    prepare_targets(lake, pipeline.output, schemas[-1])
    head = head_or_none(lake, pipeline.output)
    folders = tuple(dict.fromkeys(str(Path(p).resolve()) for p in ("", *sys.path) if p == "" or _is_users(p)))
    plan = RunPlan(
        run=run,
        spec=pipeline.to_mapping(),
        segment_keys=tuple(segment.key for segment in segments),
        schemas=tuple(schema_to_text(schema) for schema in schemas),
        step_digests=tuple(step.digest for step in steps),
        input_digest=manifest.digest,
        source_key=source_key(pipeline, manifest, run),
        search_path=folders,
        base_version=1 if head is None else int(head.version),
        fresh=fresh,
    )
    objects.put_once(run_plan_key(run), plan.to_json())
    plan = RunPlan.from_json(objects.get(run_plan_key(run)))
    fault("plan.after_run")
    return Prepared(lake, pipeline, plan, steps, segments, units)


def _is_users(folder: str) -> bool:
    """True for folders that a user put on the path, false for the interpreter's own."""
    path = Path(folder).resolve()
    return path.is_dir() and not any(path.is_relative_to(own) for own in (Path(sys.prefix), Path(sys.base_prefix)))


def compared_of(manifest: Manifest, steps: Sequence[Step]) -> dict[str, str]:
    """What decides whether work is the same, for people."""
    compared = {"input": f"{len(manifest.files)} files, {manifest.size_bytes} bytes, digest {manifest.digest[:12]}"}
    return compared | {f"steps[{step.index}] {step.op}": f"code and parameters {step.digest[:12]}" for step in steps}


def source_key(pipeline: Pipeline, manifest: Manifest, run: str) -> str:
    """Names the contribution that a later run of the same source replaces: pipeline, reader and where it reads."""
    if pipeline.write == "append":
        return f"run:{run}"
    reader, origins = pipeline.to_mapping()["steps"][0], pipeline.reader.origins(list(manifest.files))
    return f"{pipeline.pipeline}:{hash_json([reader, origins])[:16]}"


def _generation(lake: Lake, pipeline: Pipeline, name: str) -> tuple[str, int | None]:
    """The id to run under, and the version where its rows stand in the head already.

    Work that was published and then replaced by other work is done again under the next generation's id: its first
    id is taken by a commit whose rows are no longer there.
    """
    if not lake.exists() or (head := head_or_none(lake, pipeline.output)) is None:
        return name, None  # nothing was planned for this output either
    record_lineage(lake, pipeline.output)
    found = publications(lake, pipeline.output, int(head.version))
    versions = {publication.run: publication.version for publication in found}
    standing = {publication.run for publication in live(found)}
    for generation in range(1, MAX_GENERATIONS):
        run = name if generation == 1 else f"{name}-{generation}"
        if accepted_changes(lake.objects, run):
            continue  # a mixture of old and new code answers nobody; only `resume` goes on with it
        if run not in versions:
            return run, None
        if run in standing:  # a version that was cleaned away has its rows in the head all the same
            return run, versions[run] if versions[run] in version_numbers(head) else int(head.version)
    raise SpecError(f"run {name}", f"{MAX_GENERATIONS} generations", "published and replaced too often", "use --fresh")


def trace_schemas(segments: Sequence[Segment], schema: pa.Schema) -> tuple[pa.Schema, ...]:
    """The schema that each segment emits, found by sending an empty table through.

    Raises DataError with the step's place where a step misses a column.  Compiles the kernels on the way, once for
    all workers of this machine.
    """
    found, table = [], schema.empty_table()
    for segment in segments:
        for step in segment.maps:
            (built,) = build_steps((StepTask.of(step),))
            try:
                table = call_on_empty(built, table)
            except HeadraceError as error:
                place = error.place if error.place.startswith(built.place) else f"{built.place}: {error.place}"
                raise DataError(place, error.got, error.rule, error.fix) from error
            if VERDICT_COLUMN in table.column_names:
                table = table.drop_columns([VERDICT_COLUMN])
            if "id" not in table.column_names:
                raise DataError(f"steps[{step.index}] ({step.op})", "no column id", "a step keeps the id", "keep it")
        if segment.barrier is not None:
            build_keys(StepTask.of(segment.barrier))(table)
        found.append(table.schema.remove_metadata())
    return tuple(found)


def restore_prepared(lake: Lake, pipeline: Pipeline, plan: RunPlan) -> Prepared:
    """The same from a stored plan, whatever the code and the inputs are now."""
    steps = steps_of(pipeline)
    fresh_cut = segments_of(steps, plan.input_digest)
    segments = tuple(
        Segment(s.index, s.source, s.stages, s.barrier, key)
        for s, key in zip(fresh_cut, plan.segment_keys, strict=True)
    )
    units = UnitPlan.from_json(lake.objects.get(f"work/{plan.segment_keys[0]}/plan.json"))
    return Prepared(lake, pipeline, plan, steps, segments, units)


def work_of(prepared: Prepared, segment: Segment) -> str:
    """Object prefix of a segment: the last is the run's own, the others belong to all with the same first steps."""
    is_own = segment.barrier is None or (prepared.own_from is not None and segment.index >= prepared.own_from)
    return own_work(prepared.plan.run, segment.index) if is_own else f"work/{segment.key}"


def output_schema(plan: RunPlan, segment: int) -> pa.Schema:
    """What a segment emits, as planned."""
    return schema_from_text(plan.schemas[segment])
