"""What runs a lake holds, and what is known about one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from headrace.pipelines.plan import RunPlan, UnitPlan, load_run_plan, own_work
from headrace.pipelines.publish import last_work, report_key
from headrace.pipelines.records import finished_units
from headrace.storage.head import head_or_none
from headrace.storage.lake import Lake
from headrace.storage.lineage import Publication, live, publications

RunStatus = Literal["published", "replaced", "unfinished"]


@dataclass(frozen=True)
class RunInfo:
    """One run in a list."""

    run: str
    pipeline: str
    output: str
    status: RunStatus  # replaced: a later run of the same source took its rows' place
    version: int | None
    created_at: str
    units: int
    finished: int  # units of the last segment that have their record


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
    segments = []
    for index, key in enumerate(plan.segment_keys):
        finished = finished_units(lake.objects, own_work(plan.run, index))
        if not finished and index < len(plan.segment_keys) - 1:
            finished = finished_units(lake.objects, f"work/{key}")
        segments.append({"segment": index, "units": info.units, "finished": len(finished)})
    report = json.loads(lake.objects.get_or_none(report_key(plan.run)) or b"null")
    return {**vars(info), "segments": segments, "spec": plan.spec, "fresh": plan.fresh, "report": report}


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


def _info(lake: Lake, plan: RunPlan, published: dict[str, Publication], standing: set[str]) -> RunInfo:
    units = len(UnitPlan.from_json(lake.objects.get(f"work/{plan.segment_keys[0]}/plan.json")).units)
    found = published.get(plan.run)
    status: RunStatus = "unfinished" if found is None else "published" if plan.run in standing else "replaced"
    finished = len(finished_units(lake.objects, last_work(plan)))
    version = None if found is None else found.version
    return RunInfo(
        plan.run, plan.spec["pipeline"], plan.spec["output"], status, version, plan.created_at, units, finished
    )
