"""Recount a published run from bytes: the inputs read again, the three outputs scanned, and all of it compared.

Nothing here trusts a number that the run wrote down: those are what is checked.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import xxhash

from headrace.errors import DataError, DatasetNotFound, InputChanged
from headrace.pipelines.isolate import isolated_read
from headrace.pipelines.load import build
from headrace.pipelines.plan import RunPlan, load_run_plan
from headrace.pipelines.prepare import restore_prepared
from headrace.pipelines.publish import kept_files, report_key
from headrace.pipelines.records import MAX_ATTEMPTS, attempts
from headrace.pipelines.run import task_of
from headrace.pipelines.task import extend_search_path
from headrace.storage.foreign import first_line
from headrace.storage.head import head_or_none, open_head
from headrace.storage.lake import Lake
from headrace.storage.lineage import publications
from headrace.storage.literals import text_literal
from headrace.storage.open import open_pinned

PLACE = ["source_file", "source_offset"]
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Check:
    """One comparison.  `passed` is None where it could not be made, and `note` says why."""

    check: str
    counted: Any
    expected: Any
    passed: bool | None
    note: str = ""


@dataclass(frozen=True)
class Verification:
    """All comparisons of one run."""

    run: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """No comparison failed."""
        return all(check.passed is not False for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"run": self.run, "ok": self.ok, "checks": [asdict(check) for check in self.checks]}


@dataclass
class _Places:
    """Rows counted, and their places in the input summed up whatever the order (an id may have been renamed)."""

    rows: int = 0
    total: int = 0

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        files, offsets = batch["source_file"].to_pylist(), batch["source_offset"].to_pylist()
        self.rows += batch.num_rows
        for place in zip(files, offsets, strict=True):
            self.total = (self.total + xxhash.xxh3_64_intdigest(repr(place).encode())) & _MASK


def verify_run(lake: Lake, run: str) -> Verification:
    """Recount everything.  Raises DatasetNotFound where the run is unknown or not published."""
    plan = load_run_plan(lake.objects, run)
    output = plan.spec["output"]
    head = head_or_none(lake, output)
    found = [] if head is None else publications(lake, output, int(head.version))
    mine = next((publication for publication in found if publication.run == plan.run), None)
    if mine is None:
        fix = f"headrace resume {plan.run}"
        raise DatasetNotFound(f"run {plan.run}", "", "has published nothing yet", fix)
    report = json.loads(lake.objects.get(report_key(plan.run)))
    kept, rejects, quarantine = _Places(), _Places(), _Places()
    unreadable = ""
    try:
        for batch in _kept(lake, plan, mine.version):
            batch.validate(full=True)
            kept.add(batch)
    except (OSError, ValueError) as error:  # whatever Lance and Arrow say of bytes that are not what was written
        unreadable = first_line(error)
    dropped: Counter[tuple[int, str]] = Counter()
    broken: Counter[int] = Counter()
    for batch in _lost(lake, f"{output}.rejects", plan.run, [*PLACE, "step", "rule"]):
        rejects.add(batch)
        dropped.update(zip(batch["step"].to_pylist(), batch["rule"].to_pylist(), strict=True))
    for batch in _lost(lake, f"{output}.quarantine", plan.run, [*PLACE, "step"]):
        quarantine.add(batch)
        broken.update(batch["step"].to_pylist())
    checks = [
        _equal("kept rows that cannot be read", unreadable or "none", "none"),
        _equal("kept rows", kept.rows, report["rows"]["kept"]),
        _equal("rejected rows", rejects.rows, report["rows"]["rejects"]),
        _equal("quarantined rows", quarantine.rows, report["rows"]["quarantine"]),
    ]
    for step in report["steps"]:
        index, op = step["index"], step["op"]
        rules = {rule: n for (at, rule), n in dropped.items() if at == index}
        checks.append(_equal(f"steps[{index}] {op} dropped", dict(sorted(rules.items())), step["dropped"]))
        checks.append(_equal(f"steps[{index}] {op} quarantined", broken[index], step["quarantined"]))
    checks += _recount_input(lake, plan, report, (kept, rejects, quarantine))
    return Verification(plan.run, tuple(checks))


def _equal(name: str, counted: Any, expected: Any) -> Check:
    return Check(name, counted, expected, counted == expected)


def _recount_input(lake: Lake, plan: RunPlan, report: dict[str, Any], outputs: tuple[_Places, ...]) -> list[Check]:
    """Read the input again: its rows must be the rows of the outputs, place for place."""
    extend_search_path(plan.search_path)
    read = _Places()
    try:
        for batch in _read_again(lake, plan):
            read.add(batch)
    except (InputChanged, OSError, DataError) as error:
        return [Check("rows read", None, report["rows_in"], None, f"the input cannot be read as planned: {error}")]
    total = _Places(sum(o.rows for o in outputs), sum(o.total for o in outputs) & _MASK)
    return [
        _equal("rows read", read.rows, report["rows_in"]),
        _equal("rows read = kept + rejected + quarantined", read.rows, total.rows),
        _equal("places read = places kept, rejected and quarantined", f"{read.total:016x}", f"{total.total:016x}"),
    ]


def _read_again(lake: Lake, plan: RunPlan) -> Iterator[pa.Table]:
    prepared = restore_prepared(lake, build(plan.spec), plan)
    task = task_of(prepared, prepared.segments[0])
    read = prepared.pipeline.reader.build()
    for unit in prepared.units.units:
        if attempts(lake.objects, task.work, unit.number, stage=0) > MAX_ATTEMPTS:  # reading it may kill this process
            state = isolated_read(task, unit)
            yield state.kept
            yield state.quarantine
            continue
        for part in unit.parts:
            for batch in read(part, prepared.units.schema):
                yield batch.rows
                yield batch.errors


def _kept(lake: Lake, plan: RunPlan, version: int) -> Iterator[pa.RecordBatch]:
    """All columns of the fragments that this run staged, as they are in its version."""
    dataset = open_pinned(lake, plan.spec["output"], version)
    own = set(kept_files(lake.objects, plan.run))
    fragments = [f for f in dataset.get_fragments() if any(file.path in own for file in f.metadata.files)]
    if fragments:
        yield from dataset.scanner(fragments=fragments).to_batches()


def _lost(lake: Lake, name: str, run: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    head = open_head(lake, name)
    yield from head.scanner(columns=columns, filter=f"run = {text_literal(run)}").to_batches()
