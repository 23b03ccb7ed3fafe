"""Run one map step over a table so that one bad row costs one row.

The function sees the whole table first.  Where it raises, the table is halved until the rows that raise stand alone:
these go to quarantine with the error, the others are kept.  Rows that a filter marked go to the rejects with their
verdict.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from headrace.errors import DataError, HeadraceError, InternalError
from headrace.operators.shapes import VERDICT_COLUMN, MapFunction
from headrace.pipelines.task import BuiltStep, StepTask
from headrace.storage.contract import QUARANTINE, REJECTS

SAMPLE_ONE_IN = 100
NAMES = ("id", "source_file", "source_offset")
"""Columns that name a row and say where it came from: they survive every step."""


@dataclass
class StepCount:
    """What happened to the rows of one step."""

    rows_in: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    quarantined: int = 0

    def add(self, other: StepCount) -> None:
        """Sum up."""
        self.rows_in += other.rows_in
        self.kept += other.kept
        self.dropped.update(other.dropped)
        self.quarantined += other.quarantined

    def to_plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rows_in": self.rows_in,
            "kept": self.kept,
            "dropped": dict(sorted(self.dropped.items())),
            "quarantined": self.quarantined,
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> StepCount:
        """The inverse of `to_plain`."""
        return cls(plain["rows_in"], plain["kept"], Counter(plain["dropped"]), plain["quarantined"])

    @property
    def is_conserved(self) -> bool:
        """In = kept + dropped + quarantined."""
        return self.rows_in == self.kept + self.dropped.total() + self.quarantined


@dataclass
class StepResult:
    """Rows that go on, and rows that stay behind."""

    kept: pa.Table
    rejects: pa.Table  # REJECTS
    quarantine: pa.Table  # QUARANTINE
    count: StepCount


def apply_step(step: BuiltStep, table: pa.Table, run: str) -> StepResult:
    """Run one step.  Raises DataError where the operator breaks the law of its shape; that is no row's fault."""
    empty_out = call_on_empty(step, table)
    pieces: list[pa.Table] = []
    failed: list[tuple[int, str]] = []
    _halve(step, table, 0, pieces, failed)
    out = pa.concat_tables(pieces) if pieces else empty_out
    quarantine = quarantine_rows(table.take(pa.array([row for row, _ in failed], pa.int64())), step.task, run, failed)
    count = StepCount(table.num_rows, out.num_rows, Counter(), len(failed))
    rejects = REJECTS.empty_table()
    if VERDICT_COLUMN in out.column_names:
        verdict = out[VERDICT_COLUMN]
        marked = pc.is_valid(verdict)
        out_rows = out.drop_columns([VERDICT_COLUMN])
        if pc.any(marked).as_py():
            dropped = out_rows.filter(marked)
            rejects = reject_rows(dropped, verdict.filter(marked), step.task, run)
            out_rows = out_rows.filter(pc.invert(marked))
            for pair in pc.value_counts(rejects["rule"]).to_pylist():
                count.dropped[pair["values"]] += pair["counts"]
        out = out_rows
        count.kept = out.num_rows
    return StepResult(out, rejects, quarantine, count)


def call_on_empty(step: BuiltStep, table: pa.Table) -> pa.Table:
    """The step's answer to no rows of this table, which shows its columns.  Raises DataError where it can't."""
    try:
        return _call(step, table.slice(0, 0))
    except HeadraceError:
        raise
    except Exception as error:
        rule = "an operator answers an empty table with one that has the columns of its output"
        got = f"{type(error).__name__}: {error}"
        raise DataError(step.place, got, rule, "mend it, or the parameters that it got") from error


@dataclass
class KeysResult:
    """Keys of a global step, and the rows on which its key function raised."""

    keys: pa.Table
    rows: pa.Array  # positions of the rows that have keys
    quarantine: pa.Table  # QUARANTINE
    count: StepCount


def apply_keys(step: BuiltStep, table: pa.Table, run: str) -> KeysResult:
    """Run the key function of a global step; here, too, one bad row costs one row."""
    pieces: list[pa.Table] = []
    failed: list[tuple[int, str]] = []
    _halve(step, table, 0, pieces, failed)
    keys = pa.concat_tables(pieces) if pieces else call_on_empty(step, table)
    bad = [row for row, _ in failed]
    quarantine = quarantine_rows(table.take(pa.array(bad, pa.int64())), step.task, run, failed)
    rows = pa.array(sorted(set(range(table.num_rows)) - set(bad)) if bad else range(table.num_rows), pa.int64())
    return KeysResult(keys, rows, quarantine, StepCount(table.num_rows, keys.num_rows, quarantined=len(bad)))


def _halve(step: BuiltStep, table: pa.Table, first: int, pieces: list[pa.Table], failed: list[tuple[int, str]]) -> None:
    if table.num_rows == 0:
        return
    try:
        pieces.append(_call(step, table))
    except (DataError, InternalError):
        raise  # breaks its contract: no halving would help
    except BaseException as error:  # whatever a row makes an operator raise is that row's error, an exit or a panic too
        if isinstance(error, KeyboardInterrupt):
            raise
        if table.num_rows == 1:
            failed.append((first, f"{type(error).__name__}: {error}"))
            return
        half = table.num_rows // 2
        _halve(step, table.slice(0, half), first, pieces, failed)
        _halve(step, table.slice(half), first + half, pieces, failed)


def _call(step: BuiltStep, table: pa.Table) -> pa.Table:
    function: MapFunction = step.function
    out = function(table)
    if not isinstance(out, pa.Table):
        raise DataError(
            step.place, type(out).__name__, "an operator returns a pyarrow.Table", "return the changed table"
        )
    if out.num_rows != table.num_rows:
        rule = "a map returns as many rows as it gets, in the same order"
        fix = f"mark rows to drop in the column {VERDICT_COLUMN}"
        raise DataError(step.place, f"{out.num_rows} rows for {table.num_rows}", rule, fix)
    for name in NAMES:
        if name in table.column_names and name in out.column_names and not out[name].equals(table[name]):
            rule = "a map keeps its rows in their order, each with its id and its place in the source"
            fix = "put what it makes into other columns"
            raise DataError(step.place, f"other values in the column {name}", rule, fix)
    return out


def _column(table: pa.Table, name: str, kind: pa.DataType) -> Any:
    if name in table.column_names:
        return table[name].cast(kind)
    return pa.nulls(table.num_rows, kind)


def limit_texts(rejects: pa.Table, policy: str) -> pa.Table:
    """What the rejects keep of the dropped rows' texts: all, none, or those of a sample."""
    if policy == "text":
        return rejects
    chosen = [False] * rejects.num_rows
    if policy == "sample":  # by id, so that every attempt keeps the same texts
        chosen = [xxhash.xxh3_64_intdigest(i.encode()) % SAMPLE_ONE_IN == 0 for i in rejects["id"].to_pylist()]
    texts = pc.if_else(pa.array(chosen, pa.bool_()), rejects["text"], pa.scalar(None, pa.large_string()))
    return rejects.set_column(REJECTS.get_field_index("text"), REJECTS.field("text"), texts)


def _told_by(step: StepTask, run: str, num_rows: int) -> dict[str, pa.Array]:
    """The columns that say which step of which run parted with the rows."""
    return {
        "run": pa.repeat(run, num_rows),
        "step": pa.repeat(pa.scalar(step.index, pa.int32()), num_rows),
        "op": pa.repeat(step.op, num_rows),
    }


def reject_rows(table: pa.Table, verdict: Any, step: StepTask, run: str, partner: Any = None) -> pa.Table:
    """Rows of the rejects dataset for dropped rows and their verdicts (struct of rule, value, threshold, note)."""
    n = table.num_rows
    given = {
        "id": table["id"],
        **_told_by(step, run, n),
        "rule": pc.struct_field(verdict, "rule"),
        "value": pc.struct_field(verdict, "value"),
        "threshold": pc.struct_field(verdict, "threshold"),
        "note": pc.struct_field(verdict, "note"),
        "partner": pa.nulls(n, pa.string()) if partner is None else partner,
        "source_file": _column(table, "source_file", pa.string()),
        "source_offset": _column(table, "source_offset", pa.int64()),
        "text": _column(table, "text", pa.large_string()),
    }
    return pa.table({name: given[name] for name in REJECTS.names}).cast(REJECTS)


def quarantine_rows(table: pa.Table, step: StepTask, run: str, failed: list[tuple[int, str]]) -> pa.Table:
    """Rows of the quarantine dataset for rows on which a step raised."""
    n = table.num_rows
    given = {
        "id": table["id"],
        **_told_by(step, run, n),
        "error": pa.array([error for _, error in failed], pa.string()),
        "source_file": _column(table, "source_file", pa.string()),
        "source_offset": _column(table, "source_offset", pa.int64()),
        "line": pa.nulls(n, pa.int64()),
        "text": _column(table, "text", pa.large_string()),
        "raw": pa.nulls(n, pa.large_binary()),
    }
    return pa.table({name: given[name] for name in QUARANTINE.names}).cast(QUARANTINE)


def quarantine_read_errors(errors: pa.Table, reader: StepTask, run: str) -> pa.Table:
    """Rows of the quarantine dataset for what a reader could not read (READ_ERRORS)."""
    n = errors.num_rows
    given = {name: errors[name] for name in errors.column_names}
    given |= {
        **_told_by(reader, run, n),
        "text": pa.nulls(n, pa.large_string()),
    }
    return pa.table({name: given[name] for name in QUARANTINE.names}).cast(QUARANTINE)
