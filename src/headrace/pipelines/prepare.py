"""Plan a run: name it, find out whether it is published already, else store what it will do."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from headrace.errors import DataError, HeadraceError, SpecError
from headrace.operators.shapes import VERDICT, VERDICT_COLUMN, Global
from headrace.pipelines.accepted import accepted_changes
from headrace.pipelines.digest import hash_text
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
from headrace.pipelines.source import replaced_runs, source_of, store_source
from headrace.pipelines.spec import Pipeline
from headrace.pipelines.steps import call_on_empty
from headrace.pipelines.target import prepare_targets
from headrace.pipelines.task import BuiltStep, StepTask, build_keys, build_steps
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
    segments = segments_of(steps, manifest.digest)
    run, version = _generation(lake, pipeline, run_name(pipeline, segments), bool(fresh))
    if version is not None:
        return Standing(run, version, compared_of(manifest, steps))
    objects = lake.objects
    source = source_of(pipeline, manifest, run)
    if (head := head_or_none(lake, pipeline.output)) is not None:
        replaced_runs(lake, pipeline, run, source, int(head.version))  # what is refused is refused before the work
    if (stored := objects.get_or_none(run_plan_key(run))) is not None:
        plan = RunPlan.from_json(stored)
        prepare_targets(lake, pipeline.output, schema_from_text(plan.schemas[-1]))
        return restore_prepared(lake, pipeline, plan)
    if fresh:
        segments = segments_of(steps, hash_text(manifest.digest, fresh, datetime.now(UTC).isoformat()))
    units = stored_unit_plan(objects, segments[0].key, pipeline.reader, manifest, pipeline.unit_bytes)
    fault("plan.after_units")
    schemas = trace_schemas(segments, units.schema)
    prepare_targets(lake, pipeline.output, schemas[-1])
    head = head_or_none(lake, pipeline.output)
    store_source(objects, run, source)
    folders = tuple(dict.fromkeys(str(Path(p).resolve()) for p in ("", *sys.path) if p == "" or _is_users(p)))
    plan = RunPlan(
        run=run,
        spec=pipeline.to_mapping(),
        segment_keys=tuple(segment.key for segment in segments),
        schemas=tuple(schema_to_text(schema) for schema in schemas),
        step_digests=tuple(step.digest for step in steps),
        input_digest=manifest.digest,
        source_key=source.key,
        search_path=folders,
        base_version=1 if head is None else int(head.version),
        fresh=fresh,
    )
    objects.put_once(run_plan_key(run), plan.to_json())
    plan = RunPlan.from_json(objects.get(run_plan_key(run)))  # the first writer's, which need not be ours
    fault("plan.after_run")
    return restore_prepared(lake, pipeline, plan)


def _is_users(folder: str) -> bool:
    """True for folders that a user put on the path, false for the interpreter's own."""
    path = Path(folder).resolve()
    return path.is_dir() and not any(path.is_relative_to(own) for own in (Path(sys.prefix), Path(sys.base_prefix)))


def compared_of(manifest: Manifest, steps: Sequence[Step]) -> dict[str, str]:
    """What decides whether work is the same, for people."""
    compared = {"input": f"{len(manifest.files)} files, {manifest.size_bytes} bytes, digest {manifest.digest[:12]}"}
    return compared | {f"steps[{step.index}] {step.op}": f"code and parameters {step.digest[:12]}" for step in steps}


def _generation(lake: Lake, pipeline: Pipeline, name: str, is_fresh: bool) -> tuple[str, int | None]:
    """The id to run under, and the version where the same work stands in the head already.

    The same work may be done more than once: where its rows were replaced by other work since, or somebody asked for
    it afresh.  Each time is a generation with an id of its own, since the id before is taken by a commit.
    """
    if not lake.exists():
        return name, None
    found = []
    if (head := head_or_none(lake, pipeline.output)) is not None:
        record_lineage(lake, pipeline.output)
        found = publications(lake, pipeline.output, int(head.version))
    versions = {publication.run: publication.version for publication in found}
    generations = (name if number == 1 else f"{name}-{number}" for number in range(1, MAX_GENERATIONS))
    # A mixture of old and new code answers nobody; only `resume` goes on with it.
    mine = [run for run in generations if run not in versions or not accepted_changes(lake.objects, run)]
    standing = {publication.run for publication in live(found)}.intersection(mine)
    if standing and not is_fresh:
        assert head is not None
        run = max(standing, key=lambda run: versions[run])
        # A version that was cleaned away has its rows in the head all the same.
        return run, versions[run] if versions[run] in version_numbers(head) else int(head.version)
    for run in mine:
        is_planned = is_fresh and lake.objects.size_bytes(run_plan_key(run)) is not None
        if run not in versions and not is_planned and not accepted_changes(lake.objects, run):
            return run, None
    raise SpecError(
        f"run {name}", f"{MAX_GENERATIONS} generations", "the same work was done too often", "clear the lake"
    )


def trace_schemas(segments: Sequence[Segment], schema: pa.Schema) -> tuple[pa.Schema, ...]:
    """The schema that each segment emits, found by sending an empty table through.

    Raises DataError with the step's place where a step misses a column.  Compiles the kernels on the way, once for
    all workers of this machine.
    """
    found, table = [], schema.empty_table()
    for segment in segments:
        for step in segment.maps:
            built = _built(step)
            try:
                table = call_on_empty(built, table)
            except HeadraceError as error:
                place = error.place if error.place.startswith(built.place) else f"{built.place}: {error.place}"
                raise DataError(place, error.got, error.rule, error.fix) from error
            _check_types(built.place, table.schema)
            if VERDICT_COLUMN in table.column_names:
                table = table.drop_columns([VERDICT_COLUMN])
            if "id" not in table.column_names:
                raise DataError(f"steps[{step.index}] ({step.op})", "no column id", "a step keeps the id", "keep it")
        if segment.barrier is not None:
            _built(segment.barrier).function(table)
        found.append(table.schema.remove_metadata())
    return tuple(found)


def _check_types(place: str, schema: pa.Schema) -> None:
    """Raise DataError for columns whose type an empty table does not show, and for verdicts of another type."""
    for field in schema:
        if pa.types.is_null(field.type):
            rule = "a column's type must not depend on its rows"
            fix = "give it, as in pa.array(values, pa.int64())"
            raise DataError(f"{place}, column {field.name!r}", "no type where there are no rows", rule, fix)
        if field.name == VERDICT_COLUMN and field.type != VERDICT:
            fix = "build it with headrace.operators.verdicts"
            raise DataError(f"{place}, column {field.name!r}", str(field.type), f"a verdict is a {VERDICT}", fix)


def _built(step: Step) -> BuiltStep:
    """The step's function.  Raises DataError with the step's place where `build()` fails."""
    task = StepTask.of(step)
    try:
        if isinstance(step.operator, Global):
            return BuiltStep(task, build_keys(task))
        return build_steps((task,))[0]
    except HeadraceError:
        raise
    except Exception as error:
        got, rule = f"{type(error).__name__}: {error}", "build() must give the function that works on tables"
        fix = "mend it, or the parameters that it got"
        raise DataError(f"steps[{step.index}] ({step.op}), build()", got, rule, fix) from error


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
