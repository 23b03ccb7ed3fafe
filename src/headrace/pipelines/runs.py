"""What runs a lake holds, and what is known about one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from headrace.pipelines.plan import RunPlan, UnitPlan, load_run_plan, own_work
from headrace.pipelines.publish import report_key
from headrace.pipelines.records import finished_units
from headrace.storage.head import head_or_none
from headrace.storage.lake import Lake
from headrace.storage.lineage import Publication, live, publications

RunStatus = Literal["published", "replaced", "refused", "unfinished"]
"""replaced: a later run of the same source took its rows' place.  refused: all units are done, and a gate is closed."""


@dataclass(frozen=True)
class RunInfo:
    """One run in a list."""

    run: str
    pipeline: str
    output: str
    status: RunStatus
    version: int | None
    created_at: str
    units: int  # of all segments
    finished: int  # those that have their record


def list_runs(lake: Lake) -> list[RunInfo]:
    """All runs, oldest first; a missing lake has none."""
    plans = [load_run_plan(lake.objects, key.rstrip("/").rsplit("/", 1)[-1]) for key in _planned(lake)]
    outputs = {plan.spec["output"]: _publications(lake, plan.spec["output"]) for plan in plans}
    return sorted(
        (_info(lake, plan, *outputs[plan.spec["output"]]) for plan in plans), key=lambda i: (i.created_at, i.run)
    )


def show_run(lake: Lake, run: str) -> dict[str, Any]:
    """Plan, state of each segment, and report of a run.  Raises DatasetNotFound where there is none."""
    plan = load_run_plan(lake.objects, run)
    info = _info(lake, plan, *_publications(lake, plan.spec["output"]))
    finished = _finished(lake, plan)
    each = info.units // len(finished)
    segments = [{"segment": index, "units": each, "finished": number} for index, number in enumerate(finished)]
    kept = {"spec": plan.spec, "fresh": plan.fresh, "report": _report(lake, plan)}
    return {**vars(info), "segments": segments, **kept}


def failed_gates(report: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The gates that refused the result; none where there is no report yet."""
    return [gate for gate in (report or {}).get("gates", []) if not gate["passed"]]


def _planned(lake: Lake) -> list[str]:
    return [
        key
        for key in lake.objects.folders("runs")
        if lake.objects.size_bytes(f"{key.rstrip('/')}/plan.json") is not None
    ]


def _publications(lake: Lake, output: str) -> tuple[dict[str, Publication], set[str]]:
    head = head_or_none(lake, output)
    found = publications(lake, output, int(head.version)) if head is not None else []
    return {publication.run: publication for publication in found}, {publication.run for publication in live(found)}


def _report(lake: Lake, plan: RunPlan) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(lake.objects.get_or_none(report_key(plan.run)) or b"null")
    return found


def _finished(lake: Lake, plan: RunPlan) -> list[int]:
    """Units that have their record, by segment; those before the last may be shared with other runs."""
    found = []
    for index, key in enumerate(plan.segment_keys):
        finished = finished_units(lake.objects, own_work(plan.run, index))
        if not finished and index < len(plan.segment_keys) - 1:
            finished = finished_units(lake.objects, f"work/{key}")
        found.append(len(finished))
    return found


def _info(lake: Lake, plan: RunPlan, published: dict[str, Publication], standing: set[str]) -> RunInfo:
    each = len(UnitPlan.from_json(lake.objects.get(f"work/{plan.segment_keys[0]}/plan.json")).units)
    units, finished = each * len(plan.segment_keys), sum(_finished(lake, plan))
    found = published.get(plan.run)
    status: RunStatus = "unfinished"
    if found is not None:
        status = "published" if plan.run in standing else "replaced"
    elif finished == units and failed_gates(_report(lake, plan)):
        status = "refused"
    version = None if found is None else found.version
    return RunInfo(
        plan.run, plan.spec["pipeline"], plan.spec["output"], status, version, plan.created_at, units, finished
    )
