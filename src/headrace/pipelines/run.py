"""Run a pipeline: plan, work, publish; and continue a run that was stopped anywhere.

    planned -> units of segment 0 -> selection -> units of segment 1 -> ... -> checked -> committed -> told

Every arrow is durable: a restart finds what is stored and goes on from there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Literal

from headrace.errors import SpecError, StorageUnavailable
from headrace.operators.shapes import Global
from headrace.pipelines.accepted import accept_changes, accepted_changes, first_own_segment, take_over
from headrace.pipelines.describe import describe_scratch, describe_unit
from headrace.pipelines.funnel import Funnel, funnel_of
from headrace.pipelines.gates import check_gates, require_gates
from headrace.pipelines.load import build, load_pipeline
from headrace.pipelines.local import run_local
from headrace.pipelines.lost import set_lost_scratch_aside
from headrace.pipelines.plan import load_run_plan, schema_to_text
from headrace.pipelines.prepare import Prepared, Standing, output_schema, prepare, restore_prepared, work_of
from headrace.pipelines.progress import Progress, Silent
from headrace.pipelines.publish import (
    finish_publication,
    last_work,
    publish_run,
    report_key,
    store_report,
    units_to_redo,
)
from headrace.pipelines.ray_data import ray_session, run_ray
from headrace.pipelines.records import finished_units, load_records
from headrace.pipelines.report import make_report
from headrace.pipelines.segments import Segment
from headrace.pipelines.selection import make_selection
from headrace.pipelines.spec import MIB, Pipeline
from headrace.pipelines.task import SegmentTask, extend_search_path
from headrace.pipelines.turn import take_turn
from headrace.storage.commit import find_run
from headrace.storage.faults import fault
from headrace.storage.lake import Lake

Engine = Literal["auto", "local", "ray"]

RAY_PAYS_BYTES = 256 * MIB
"""From here on starting Ray (about 6 s) is worth it on one machine."""

REDO_ROUNDS = 3


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    run: str
    output: str
    version: int
    status: Literal["published", "already published"]
    report: dict[str, Any] = field(repr=False)
    compared: dict[str, str] = field(repr=False)

    @property
    def reference(self) -> str:
        """`name@version` of what was published."""
        return f"{self.output}@{self.version}"

    def _repr_html_(self) -> str:
        names = ("index", "op", "rows_in", "kept", "dropped", "quarantined")
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in names)
        body = ""
        for step in self.report.get("steps", []):
            told = {**step, "dropped": ", ".join(f"{rule} {n:,}" for rule, n in step["dropped"].items())}
            cells = (f"{told[name]:,}" if isinstance(told[name], int) else escape(told[name]) for name in names)
            body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        title = f"<b>{escape(self.reference)}</b>, {self.status}, run {escape(self.run)}"
        return f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def run(
    spec: Pipeline | str | Path,
    *,
    lake: str | Lake | None = None,
    engine: Engine = "auto",
    cpus: int | None = None,
    overrides: Iterable[str] = (),
    fresh: str = "",
    progress: Progress | None = None,
) -> RunResult:
    """Run a pipeline until its output is published, or say that the same work is published already.

    spec: a pipeline file or a Pipeline.  lake: URI, else HEADRACE_LAKE, else ./lake.  cpus: threads, or CPUs of our
    own Ray.  fresh: a reason to do everything again.  Raises SpecError, DataError, InputChanged, GateFailed; whatever
    stops it, the next call continues.
    """
    pipeline = spec if isinstance(spec, Pipeline) else load_pipeline(spec, overrides)
    if isinstance(spec, Pipeline) and tuple(overrides):
        raise SpecError("overrides", "a Pipeline", "overrides change a pipeline file", "change the Pipeline itself")
    place = lake if isinstance(lake, Lake) else Lake.resolve(lake)
    tell = progress or Silent()
    tell.phase("planning")
    with place.as_default():
        found = prepare(pipeline, place, fresh)
    if isinstance(found, Standing):
        return _standing(place, pipeline, found)
    return _work(found, engine, cpus, tell)


def resume(
    run_id: str,
    *,
    lake: str | Lake | None = None,
    engine: Engine = "auto",
    cpus: int | None = None,
    accept_code_change: Iterable[str] = (),
    progress: Progress | None = None,
) -> RunResult:
    """Continue a stored run from its plan; finished units are not read again.

    Where a step's code or parameters are no longer those of the plan, `accept_code_change` must name its op: finished
    units are kept, the rest run with the new code, and lineage shows both digests.
    """
    place = lake if isinstance(lake, Lake) else Lake.resolve(lake)
    plan = load_run_plan(place.objects, run_id)
    extend_search_path(plan.search_path)
    pipeline = build(plan.spec)
    prepared = restore_prepared(place, pipeline, plan)
    accepted = set(accept_code_change)
    changed = [s for s, old in zip(prepared.steps, plan.step_digests, strict=True) if s.digest != old]
    known = {(change["op"], change["after"]) for change in accepted_changes(place.objects, plan.run)}
    refused = [s for s in changed if s.op not in accepted and (s.op, s.digest) not in known]
    if unknown := accepted - {s.op for s in prepared.steps}:
        valid = ", ".join(s.op for s in prepared.steps)
        raise SpecError(
            "--accept-code-change", ", ".join(sorted(unknown)), f"steps of this run: {valid}", "name one of them"
        )
    if refused:
        told = ", ".join(f"steps[{s.index}] {s.op}" for s in refused)
        flags = " ".join(f"--accept-code-change {s.op}" for s in refused)
        rule = "the code of a run's steps must be that of its plan"
        raise SpecError(f"run {plan.run}", f"changed: {told}", rule, f"run the file anew, or resume with {flags}")
    if (version := find_run(place, pipeline.output, plan.run)) is not None:
        finish_publication(place, pipeline, plan, version)
        return _standing(place, pipeline, Standing(plan.run, version, {"run": f"{plan.run} has a kept commit"}))
    accept_changes(place.objects, plan, changed)
    if changes := accepted_changes(place.objects, plan.run):
        prepared = replace(prepared, own_from=first_own_segment(prepared.segments, changes))
        for segment in prepared.segments:
            if (own := work_of(prepared, segment)) != f"work/{segment.key}":
                take_over(place.objects, f"work/{segment.key}", own)
    return _work(prepared, engine, cpus, progress or Silent())


def _standing(lake: Lake, pipeline: Pipeline, found: Standing) -> RunResult:
    """Say that the work is published.  Raises GateFailed where it would not be with the gates as they are now."""
    report = json.loads(lake.objects.get_or_none(report_key(found.run)) or b"{}")
    if report:
        funnel = Funnel((), report["rows_in"], report["rows"])
        require_gates(
            check_gates(pipeline.gates, funnel), f"{pipeline.output}@{found.version}, published before", found.run
        )
    if pipeline.channel is not None:
        finish_publication(lake, pipeline, load_run_plan(lake.objects, found.run), found.version)
    return RunResult(found.run, pipeline.output, found.version, "already published", report, found.compared)


def _work(prepared: Prepared, engine: Engine, cpus: int | None, tell: Progress) -> RunResult:
    lake, pipeline, plan = prepared.lake, prepared.pipeline, prepared.plan
    started, clock = datetime.now(UTC), time.monotonic()
    num_cpus = cpus or len(os.sched_getaffinity(0))
    chosen = choose_engine(engine, prepared, num_cpus)
    with take_turn(lake, plan.run, tell):
        if (version := find_run(lake, pipeline.output, plan.run, plan.base_version)) is not None:
            finish_publication(lake, pipeline, plan, version)  # another coordinator of this run was faster
            return _standing(lake, pipeline, Standing(plan.run, version, {"run": f"{plan.run} has a kept commit"}))
        again: dict[int, str] = {}
        works = [work_of(prepared, segment) for segment in prepared.segments]
        with _Executor(chosen, num_cpus, tell) as executor:
            for _ in range(REDO_ROUNDS):
                for number, unit, where in set_lost_scratch_aside(lake.objects, works, len(prepared.units.units)):
                    tell.warn(f"unit {unit} of segment {number} is done again: its scratch is lost ({where})")
                for segment in prepared.segments:
                    _run_segment(prepared, segment, executor, tell)
                records = load_records(lake.objects, last_work(plan), len(prepared.units.units))
                if not (again := units_to_redo(lake, plan, pipeline.output, records)):
                    break
                for unit, why in again.items():
                    tell.warn(f"unit {unit} is done again: {why}")
            else:
                rule = "what a unit leaves must stay until it is published"
                fix = "see what deletes it, and run again"
                raise StorageUnavailable(f"run {plan.run}", f"units {sorted(again)}: {again}", rule, fix)
        tell.phase("publishing")
        funnel = funnel_of([step.op for step in prepared.steps], records)
        gates = check_gates(pipeline.gates, funnel)
        timing = {"started_at": started.isoformat(), "seconds": round(time.monotonic() - clock, 3)}
        report = make_report(prepared, funnel, gates, records, {"engine": chosen, "cpus": num_cpus, **timing})
        store_report(lake.objects, plan.run, report)  # before the gates: who meets a closed one wants the funnel
        require_gates(gates, pipeline.output, plan.run)
        done = publish_run(lake, pipeline, plan, records)
    stored = json.loads(lake.objects.get(report_key(plan.run)))
    return RunResult(plan.run, pipeline.output, done.kept, "published", stored, {})


def choose_engine(engine: Engine, prepared: Prepared, num_cpus: int) -> Literal["local", "ray"]:
    """`auto` takes Ray where the input is large enough, a stage needs a GPU, or a cluster is given by RAY_ADDRESS."""
    if engine != "auto":
        return engine
    size_bytes = sum(unit.size_bytes for unit in prepared.units.units)
    gpus = any(stage.resources.num_gpus for segment in prepared.segments for stage in segment.stages)
    return "ray" if gpus or "RAY_ADDRESS" in os.environ or (num_cpus > 1 and size_bytes >= RAY_PAYS_BYTES) else "local"


class _Executor:
    """The chosen executor; an engine is started when the first unit needs it, and once a run."""

    def __init__(self, engine: Literal["local", "ray"], num_cpus: int, tell: Progress) -> None:
        self.engine, self.num_cpus, self.tell = engine, num_cpus, tell
        self._session: Any = None

    def __enter__(self) -> _Executor:
        return self

    def __exit__(self, *error: object) -> None:
        if self._session is not None:
            self._session.__exit__(*error)

    def run(self, task: SegmentTask, segment: Segment, descriptions: Sequence[str]) -> None:
        """Run units until each has its record."""

        def on_record(record: Any) -> None:
            self.tell.unit_done(segment.index, record)
            fault("driver.after_unit")

        if self.engine == "local":
            run_local(task, descriptions, self.num_cpus, on_record)
            return
        if self._session is None:
            self.tell.phase("starting Ray")
            session = ray_session(self.num_cpus, os.environ.get("RAY_ADDRESS"))
            session.__enter__()
            self._session = session
        run_ray(task, segment.stages, descriptions, on_record)


def _run_segment(prepared: Prepared, segment: Segment, executor: _Executor, tell: Progress) -> None:
    """Run the units of a segment that have no record yet, then its barrier."""
    lake, plan = prepared.lake, prepared.plan
    objects, units = lake.objects, prepared.units.units
    work = work_of(prepared, segment)
    finished = finished_units(objects, work)
    open_units = [unit for unit in units if unit.number not in finished]
    size_bytes = sum(unit.size_bytes for unit in units)
    tell.planned(plan.run, segment.index, len(prepared.segments), len(units), len(units) - len(open_units), size_bytes)
    if open_units:
        if segment.index == 0:
            descriptions = [describe_unit(unit) for unit in open_units]
        else:
            before = finished_units(objects, work_of(prepared, prepared.segments[segment.index - 1]))
            descriptions = [describe_scratch(unit.number, before[unit.number]) for unit in open_units]
        executor.run(task_of(prepared, segment), segment, descriptions)
    if segment.barrier is not None:
        tell.phase(f"selecting ({segment.barrier.op})")
        fault("driver.before_selection")
        assert isinstance(segment.barrier.operator, Global)
        make_selection(objects, work, len(units), segment.barrier.operator)
        fault("driver.after_selection")


def task_of(prepared: Prepared, segment: Segment) -> SegmentTask:
    """What the workers of a segment get."""
    plan = prepared.plan
    first = segment.index == 0
    return SegmentTask.of(
        segment,
        lake=prepared.lake.uri,
        run=plan.run,
        work=work_of(prepared, segment),
        previous="" if first else work_of(prepared, prepared.segments[segment.index - 1]),
        input_schema=schema_to_text(prepared.units.schema if first else output_schema(plan, segment.index - 1)),
        output_schema=plan.schemas[segment.index],
        output=prepared.pipeline.output,
        rejects=prepared.pipeline.rejects,
        search_path=plan.search_path,
    )
