"""The run report: inputs, digests, funnel, gates, versions and timings of one run, and changes of code it accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.pipelines.accepted import accepted_changes
from headrace.pipelines.environment import package_versions
from headrace.pipelines.funnel import Funnel
from headrace.pipelines.gates import GateResult
from headrace.pipelines.prepare import Prepared, work_of
from headrace.pipelines.records import UnitRecord, load_records


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
        for record in load_records(objects, work_of(prepared, segment), len(prepared.units.units))
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
