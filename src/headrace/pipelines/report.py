"""The run report: inputs, digests, funnel, gates, versions and timings of one run, and changes of code it accepted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.pipelines.environment import package_versions
from headrace.pipelines.funnel import Funnel
from headrace.pipelines.gates import GateResult
from headrace.pipelines.plan import RunPlan
from headrace.pipelines.prepare import Prepared
from headrace.pipelines.records import UnitRecord, load_records
from headrace.pipelines.segments import Step
from headrace.storage.objects import ObjectStore


def accept_changes(objects: ObjectStore, plan: RunPlan, changed: Sequence[Step]) -> None:
    """Note which steps go on with other code than planned."""
    for step in changed:
        body = {"step": step.index, "op": step.op, "before": plan.step_digests[step.index], "after": step.digest}
        objects.put_once(f"runs/{plan.run}/accepted/{step.index}-{step.digest}.json", json.dumps(body).encode())


def accepted_changes(objects: ObjectStore, run: str) -> list[dict[str, Any]]:
    """The changes of code that a run accepted."""
    return [json.loads(objects.get(info.key)) for info in objects.list(f"runs/{run}/accepted/")]


def make_report(
    prepared: Prepared,
    funnel: Funnel,
    gates: Sequence[GateResult],
    records: Sequence[UnitRecord],
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Plain values; step digests are those that the units ran with, so that an accepted change shows as two."""
    plan, objects = prepared.plan, prepared.lake.objects
    code: dict[int, list[str]] = {}
    earlier = [
        record
        for segment in prepared.segments[:-1]
        for record in load_records(objects, f"work/{segment.key}", len(prepared.units.units))
    ]
    for record in (*earlier, *records):
        for index, digest in record.code.items():
            if digest not in code.setdefault(index, []):
                code[index].append(digest)
    steps = []
    for line, step in zip(funnel.steps, prepared.steps, strict=True):
        digests = code.get(step.index) or [step.digest]
        steps.append({**line.to_plain(), "params": step.params, "digests": digests})
    files = {part.file for unit in prepared.units.units for part in unit.parts}
    size_bytes = sum(file.size_bytes for file in files)
    return {
        "run": plan.run,
        "pipeline": prepared.pipeline.pipeline,
        "output": prepared.pipeline.output,
        "channel": prepared.pipeline.channel,
        "input": {"files": len(files), "size_bytes": size_bytes, "digest": plan.input_digest},
        "units": len(prepared.units.units),
        "rows_in": funnel.rows_in,
        "rows": funnel.rows,
        "renamed_ids": sum(record.renamed for record in records),
        "steps": steps,
        "gates": [gate.to_plain() for gate in gates],
        "accepted": accepted_changes(objects, plan.run),
        "fresh": plan.fresh,
        "packages": package_versions(),
        **facts,
    }
