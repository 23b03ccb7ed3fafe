"""Why is this row here, or not?  One id against the kept rows, the rejects and the quarantine of a version.

Only runs count that are live at the version: a run that died before its kept commit, or that another replaced,
may have left rejects, and those explain nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import lance

from headrace.errors import DatasetNotFound, SpecError
from headrace.storage.contract import stored_contract
from headrace.storage.foreign import storage_calls
from headrace.storage.head import head_or_none
from headrace.storage.lake import Lake
from headrace.storage.lineage import Publication, live, publications
from headrace.storage.literals import text_literal
from headrace.storage.open import open_pinned

Outcome = Literal["kept", "dropped", "quarantined", "unknown"]

PREVIEW_CHARS = 200

_SHOWN = {ord("\n"): "\N{RETURN SYMBOL}", ord("\t"): " "}


@dataclass(frozen=True)
class Fact:
    """One thing that happened to the row; what a fact of its kind does not know is None."""

    outcome: Outcome
    run: str | None
    step: int | None = None
    op: str | None = None
    rule: str | None = None
    value: float | None = None
    threshold: float | None = None
    note: str | None = None
    partner: str | None = None
    error: str | None = None
    source_file: str | None = None
    source_offset: int | None = None
    line: int | None = None
    text: str | None = None


@dataclass(frozen=True)
class Explanation:
    """The answer for one id.  `rows` has the decisive fact first."""

    id: str
    outcome: Outcome
    dataset: str
    version: int
    run: str | None
    rows: tuple[Fact, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "rows": [asdict(row) for row in self.rows]}

    def text(self) -> str:
        """For people; what came from the data is made printable."""
        if self.outcome == "unknown":
            return (
                f"{printable(self.id)}: unknown in {self.dataset}@{self.version}; neither kept, dropped nor quarantined"
            )
        lines = [f"{printable(self.id)}: {self.outcome} in {self.dataset}@{self.version}, run {self.run or 'unknown'}"]
        for fact in self.rows:
            lines += [f"  {line}" for line in _lines(fact)]
        return "\n".join(lines)

    __str__ = text


def explain(lake: Lake, name: str, version: int, id: str) -> Explanation:
    """What happened to the row `id` on its way to this version of the dataset."""
    dataset = open_pinned(lake, name, version)
    published = publications(lake, name, version)
    alive = live(published)
    facts = _kept(dataset, id, {publication.version: publication.run for publication in published})
    for suffix, outcome in (("rejects", "dropped"), ("quarantine", "quarantined")):
        facts += _lost(lake, f"{name}.{suffix}", alive, outcome, id)
    decisive = facts[0] if facts else Fact("unknown", None)
    return Explanation(id, decisive.outcome, name, version, decisive.run, tuple(facts))


def printable(text: str) -> str:
    """The text in one line, without control and other unprintable characters, which could steer a terminal."""
    shown = text.replace("\r\n", "\n").translate(_SHOWN)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in shown)


def _kept(dataset: lance.LanceDataset, id: str, runs: dict[int, str]) -> list[Fact]:
    key = stored_contract(dataset.schema).key or "id"
    if key not in dataset.schema.names:
        raise SpecError(f"dataset {dataset.uri}", "no key column", "rows are explained by their id", "declare one")
    columns = [name for name in ("source_file", "source_offset", "text") if name in dataset.schema.names]
    found = _rows(dataset, [*columns, "_row_created_at_version"], key, id)
    return [_fact("kept", row, runs.get(row.pop("_row_created_at_version"))) for row in found]


def _lost(lake: Lake, name: str, alive: Iterable[Publication], outcome: Any, id: str) -> list[Fact]:
    """Facts from the rejects or the quarantine, as they were when the newest of the live runs published."""
    numbers = {p.run: p.rejects_version if outcome == "dropped" else p.quarantine_version for p in alive}
    version = max((number for number in numbers.values() if number is not None), default=None)
    try:
        dataset = head_or_none(lake, name) if version is None else open_pinned(lake, name, version)
    except DatasetNotFound:  # cleaned away: later versions have its rows too
        dataset = head_or_none(lake, name)
    if dataset is None:
        return []
    known = {fact_field.name for fact_field in fields(Fact)} - {"outcome"}
    found = _rows(dataset, [column for column in dataset.schema.names if column in known], "id", id)
    return [_fact(outcome, row, row["run"]) for row in found if row["run"] in numbers]


def _rows(dataset: lance.LanceDataset, columns: list[str], key: str, id: str) -> list[dict[str, Any]]:
    with storage_calls(dataset.uri):
        wanted = f"{key} = {text_literal(id)}"
        rows: list[dict[str, Any]] = dataset.to_table(columns=columns, filter=wanted).to_pylist()
    return rows


def _fact(outcome: Outcome, row: dict[str, Any], run: str | None) -> Fact:
    text = row.get("text")
    preview = text[:PREVIEW_CHARS] if isinstance(text, str) else None
    return Fact(**{**row, "outcome": outcome, "run": run, "text": preview})


def _lines(fact: Fact) -> list[str]:
    lines = []
    if fact.op or fact.rule or fact.error:
        where = f"step {fact.step} {fact.op or ''}".strip() if fact.step is not None else fact.op or fact.outcome
        told = [fact.rule, None if fact.value is None else f"value {fact.value:g}"]
        told += [None if fact.threshold is None else f"threshold {fact.threshold:g}", fact.error, fact.note]
        told += [f"lost to {fact.partner}" if fact.partner else None]
        lines.append(printable(f"{where}: {', '.join(part for part in told if part)}"))
    if fact.source_file is not None:
        at = "" if fact.source_offset is None else f" at {fact.source_offset}"
        line = "" if fact.line is None else f", line {fact.line}"
        lines.append(printable(f"from {fact.source_file}{at}{line}"))
    if fact.text:
        lines.append(f"text: {printable(fact.text)}")
    return lines
