"""Lineage: one row for each published version, in a dataset of its own that outlives the versions' clean-up.

The kept commit is the publication.  It carries the run and the versions of its rejects and quarantine, so that a
lineage row which a crash left unwritten can be told from the commit, and written later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

import lance
import pyarrow as pa

from headrace.storage.commit import RUN, create_target, publish, stage
from headrace.storage.contract import Contract
from headrace.storage.foreign import storage_calls
from headrace.storage.head import head_or_none, open_head, transaction_properties, version_numbers
from headrace.storage.lake import Lake
from headrace.storage.literals import text_literal
from headrace.storage.reference import check_name

LINEAGE = "_lineage"
PIPELINE = "headrace.pipeline"
SOURCE = "headrace.source"
SUPERSEDES = "headrace.supersedes"
REJECTS_VERSION = "headrace.rejects_version"
QUARANTINE_VERSION = "headrace.quarantine_version"
PUBLISHED_AT = "headrace.published_at"

SCHEMA = pa.schema(
    [
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("version", pa.int64(), nullable=False),
        pa.field("run", pa.string(), nullable=False),
        pa.field("pipeline", pa.string()),
        pa.field("source", pa.string()),  # what the run contributes; a later run of one source may replace it
        pa.field("supersedes", pa.list_(pa.string())),  # runs whose rows left with this version
        pa.field("rejects_version", pa.int64()),
        pa.field("quarantine_version", pa.int64()),
        pa.field("published_at", pa.timestamp("us", "UTC")),
        pa.field("report", pa.large_string()),
    ]
)
CONTRACT = Contract(SCHEMA, key=None)


@dataclass(frozen=True)
class Publication:
    """That a run published a version, and what it went with."""

    version: int
    run: str
    pipeline: str | None = None
    source: str | None = None
    supersedes: tuple[str, ...] = ()
    rejects_version: int | None = None
    quarantine_version: int | None = None
    published_at: datetime | None = None


@dataclass(frozen=True)
class LineageRow:
    """All that is kept about one published version.

    `report` is JSON: inputs with versions, digests per step, accepted digests, parameters, package versions, rows in,
    kept, dropped and quarantined per step, gates, timings.
    """

    dataset: str
    version: int
    run: str
    published_at: datetime
    pipeline: str = ""
    source: str = ""
    supersedes: tuple[str, ...] = ()
    rejects_version: int | None = None
    quarantine_version: int | None = None
    report: Mapping[str, Any] = field(default_factory=dict)


def record(lake: Lake, row: LineageRow) -> None:
    """Write the lineage of one version; a version that has its row already keeps that one."""
    check_name(row.dataset)
    create_target(lake, LINEAGE, CONTRACT)
    head = open_head(lake, LINEAGE)
    if _select(head, row.dataset, row.version, ["version"]):
        return
    values = {**vars(row), "supersedes": list(row.supersedes), "report": json.dumps(row.report, sort_keys=True)}
    staged = stage(lake, LINEAGE, pa.Table.from_pylist([values], schema=SCHEMA))
    # No row up to this head, so only commits after it can hold one: the scan stays short as the history grows.
    publish(lake, LINEAGE, staged, f"lineage:{row.dataset}:{row.version}", {}, base=head.version + 1)


def lineage_of(lake: Lake, name: str, version: int | None = None) -> list[LineageRow]:
    """The lineage of the dataset, or of one version of it, ordered by version; empty where none was written."""
    check_name(name)
    head = head_or_none(lake, LINEAGE)
    if head is None:
        return []
    return [_row(values) for values in _select(head, name, version, SCHEMA.names)]


def publications(lake: Lake, name: str, version: int) -> list[Publication]:
    """Who published what up to this version, ordered by version.

    From the lineage, and for versions without a row yet from the commits themselves.
    """
    found = {}
    columns = [column.name for column in fields(Publication)]
    if (lineage := head_or_none(lake, LINEAGE)) is not None:
        for values in _select(lineage, check_name(name), None, columns):
            if values["version"] <= version:
                values["supersedes"] = tuple(values["supersedes"] or ())
                found[values["version"]] = Publication(**values)
    if (head := head_or_none(lake, name)) is not None:
        for number in version_numbers(head):
            if number <= version and number not in found:
                properties = transaction_properties(head, number)
                if RUN in properties:
                    found[number] = _publication(number, properties)
    return [found[number] for number in sorted(found)]


def live_runs(lake: Lake, name: str, version: int) -> set[str]:
    """Runs whose rows are part of this version: published up to it, and replaced by none up to it."""
    return {publication.run for publication in live(publications(lake, name, version))}


def live(published: list[Publication]) -> list[Publication]:
    """Those of the publications that no other of them replaces."""
    superseded = {run for publication in published for run in publication.supersedes}
    return [publication for publication in published if publication.run not in superseded]


def _select(dataset: lance.LanceDataset, name: str, version: int | None, columns: list[str]) -> list[dict[str, Any]]:
    wanted = f"dataset = {text_literal(name)}" + ("" if version is None else f" AND version = {version}")
    with storage_calls(dataset.uri):
        rows: list[dict[str, Any]] = dataset.to_table(columns=columns, filter=wanted).to_pylist()
    return sorted(rows, key=lambda row: row["version"])


def _row(values: dict[str, Any]) -> LineageRow:
    report = json.loads(values["report"] or "{}")
    return LineageRow(**{**values, "supersedes": tuple(values["supersedes"] or ()), "report": report})


def _publication(version: int, properties: Mapping[str, str]) -> Publication:
    rejects, quarantine = properties.get(REJECTS_VERSION), properties.get(QUARANTINE_VERSION)
    told_at = properties.get(PUBLISHED_AT)
    return Publication(
        version,
        properties[RUN],
        properties.get(PIPELINE),
        properties.get(SOURCE),
        tuple(json.loads(properties.get(SUPERSEDES) or "[]")),
        int(rejects) if rejects else None,
        int(quarantine) if quarantine else None,
        datetime.fromisoformat(told_at) if told_at else None,
    )
