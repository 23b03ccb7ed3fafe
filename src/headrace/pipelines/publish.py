"""From finished units to a published version: check, audit, commit quarantine, rejects and kept *last*, then tell.

The kept commit is the publication.  A coordinator killed before it published nothing; one killed after it is found by
the run id in the transaction, and whoever comes next repairs what follows from it (channel, lineage).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headrace.pipelines.chain import target
from headrace.pipelines.identity import find_repeats, store_repeats
from headrace.pipelines.plan import RunPlan, load_run_plan, own_work
from headrace.pipelines.records import TABLES, UnitRecord, finished_units, mark_broken
from headrace.pipelines.source import replaced_runs, stored_source
from headrace.pipelines.spec import Pipeline
from headrace.storage.channels import move_channel
from headrace.storage.commit import Commit, missing_files, publish
from headrace.storage.faults import fault
from headrace.storage.head import open_head
from headrace.storage.lake import Lake
from headrace.storage.lineage import (
    PIPELINE,
    PUBLISHED_AT,
    QUARANTINE_VERSION,
    REJECTS_VERSION,
    SOURCE,
    SUPERSEDES,
    LineageRow,
    lineage_of,
    publications,
    record,
)
from headrace.storage.objects import ObjectStore


@dataclass(frozen=True)
class Published:
    """Versions of the three outputs."""

    kept: int
    rejects: int
    quarantine: int
    committed: bool  # False: this run was there already


def last_work(plan: RunPlan) -> str:
    """Object prefix of a run's last segment."""
    return own_work(plan.run, len(plan.segment_keys) - 1)


def units_to_redo(lake: Lake, plan: RunPlan, output: str, records: Sequence[UnitRecord]) -> dict[int, str]:
    """Units that must be done again before publishing, with the reason; their records are set aside.

    Staged files may be gone or cut, and ids may occur twice over all units.
    """
    again: dict[int, str] = {}
    for name in TABLES:
        place = target(output, name)
        owner = {file.path: r.unit for r in records for fragment in r.staged[name] for file in fragment.files}
        fragments = [fragment for record in records for fragment in record.staged[name]]
        for path in missing_files(lake, place, fragments) if fragments else []:
            again[owner[path]] = f"its staged file is lost ({place}: {path})"
    for done in records:
        for place, size_bytes in done.scratch.values():
            if lake.objects.size_bytes(place) != size_bytes:
                again[done.unit] = f"its scratch is lost ({place})"
    if not again and (repeats := find_repeats(lake.objects, records)):
        store_repeats(lake.objects, plan.run, repeats)
        again = {int(unit): f"{len(ids)} of its ids occur before" for unit, ids in repeats.items()}
    fault("redo.before_marks")
    judged = {record.unit: record for record in records}
    for unit, why in again.items():
        mark_broken(lake.objects, last_work(plan), unit, why, judged[unit])
    return again


def report_key(run: str) -> str:
    """Object key of a run's report."""
    return f"runs/{run}/report.json"


def store_report(objects: ObjectStore, run: str, report: Mapping[str, Any]) -> None:
    """Keep what is to be published.  A later try replaces it: units may have been done again since."""
    objects.put(report_key(run), json.dumps(report).encode())


def publish_run(lake: Lake, pipeline: Pipeline, plan: RunPlan, records: Sequence[UnitRecord]) -> Published:
    """Commit the three outputs and everything that follows from the kept commit.  The report is stored before."""
    commits: dict[str, Commit] = {}
    for name in ("quarantine", "rejects"):
        fault(f"publish.before_{name}")
        staged = [fragment for record in records for fragment in record.staged[name]]
        commits[name] = publish(lake, target(pipeline.output, name), staged, plan.run, {PIPELINE: pipeline.pipeline})
    fault("publish.before_kept")
    staged = [fragment for record in records for fragment in record.staged["kept"]]
    properties = {
        PIPELINE: pipeline.pipeline,
        SOURCE: plan.source_key,
        REJECTS_VERSION: str(commits["rejects"].version),
        QUARANTINE_VERSION: str(commits["quarantine"].version),
        PUBLISHED_AT: datetime.now(UTC).isoformat(),
    }

    source = stored_source(lake.objects, plan.run)

    def superseding(version: int) -> tuple[frozenset[str], Mapping[str, str]]:
        old = replaced_runs(lake, pipeline, plan.run, source, version)
        files = frozenset(path for run in old for path in kept_files(lake.objects, run))
        return files, {SUPERSEDES: json.dumps(sorted(old))}

    kept = publish(lake, pipeline.output, staged, plan.run, properties, superseding)
    fault("publish.after_kept")
    finish_publication(lake, pipeline, plan, kept.version)
    return Published(kept.version, commits["rejects"].version, commits["quarantine"].version, kept.committed)


def finish_publication(lake: Lake, pipeline: Pipeline, plan: RunPlan, version: int) -> None:
    """What follows from a kept commit: lineage and channel.  Harmless to repeat."""
    record_lineage(lake, pipeline.output)
    fault("publish.after_lineage")
    if pipeline.channel is not None:
        why = f"run {plan.run}"
        move_channel(lake, pipeline.output, pipeline.channel, version, why, run=plan.run, is_publication=True)
    fault("publish.after_channel")


def record_lineage(lake: Lake, name: str) -> None:
    """Give every published version of a dataset its lineage row, from its transaction and its run's stored report."""
    head = open_head(lake, name)
    told = {row.version for row in lineage_of(lake, name)}
    for found in publications(lake, name, int(head.version)):
        if found.version not in told:
            report = json.loads(lake.objects.get_or_none(report_key(found.run)) or b"{}")
            given = {**vars(found), "pipeline": found.pipeline or "", "source": found.source or ""}
            given["published_at"] = found.published_at or datetime.now(UTC)
            record(lake, LineageRow(dataset=name, report=report, **given))


def kept_files(objects: ObjectStore, run: str) -> list[str]:
    """Data files of the kept rows of a published run, from its unit records."""
    work = last_work(load_run_plan(objects, run))
    keys = finished_units(objects, work).values()
    records = [UnitRecord.from_json(objects.get(key)) for key in keys]
    return [file.path for record in records for fragment in record.staged["kept"] for file in fragment.files]
