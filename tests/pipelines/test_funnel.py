"""Rows in = kept + dropped + quarantined: whoever miscounts is named, and nothing is published."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

import pytest

from headrace.errors import InternalError
from headrace.pipelines.funnel import funnel_of
from headrace.pipelines.records import UnitRecord
from headrace.pipelines.steps import StepCount
from headrace.storage.commit import StagedFragment

OPS = ["read.jsonl", "text.length", "dedup.exact"]


def fragments(*rows: int) -> tuple[StagedFragment, ...]:
    return tuple(StagedFragment("{}", (), n) for n in rows)


def record(unit: int = 0) -> UnitRecord:
    """Ten rows and one that cannot be read: three too short, one too long, one that breaks, two twice."""
    return UnitRecord(
        unit=unit,
        rows_read=10,
        read_errors=1,
        bytes_read=0,
        counts={
            0: StepCount(11, 10, quarantined=1),
            1: StepCount(10, 5, Counter(min_words=3, max_words=1), 1),
            2: StepCount(5, 3, Counter(duplicate=2)),
        },
        code={},
        rows={},
        staged={"kept": fragments(1, 2), "rejects": fragments(6), "quarantine": fragments(2)},
    )


def test_units_are_summed_by_step_and_rule() -> None:
    funnel = funnel_of(OPS, [record(0), record(1)])
    assert funnel.rows_in == 22
    assert funnel.rows == {"kept": 6, "rejects": 12, "quarantine": 4}
    assert [step.to_plain() for step in funnel.steps] == [
        {"index": 0, "op": "read.jsonl", "rows_in": 22, "kept": 20, "dropped": {}, "quarantined": 2},
        {
            "index": 1,
            "op": "text.length",
            "rows_in": 20,
            "kept": 10,
            "dropped": {"max_words": 2, "min_words": 6},
            "quarantined": 2,
        },
        {"index": 2, "op": "dedup.exact", "rows_in": 10, "kept": 6, "dropped": {"duplicate": 4}, "quarantined": 0},
    ]
    assert funnel.to_plain()["rows_in"] == 22


def test_no_units_are_no_rows() -> None:
    funnel = funnel_of(OPS, [])
    assert (funnel.rows_in, funnel.rows, len(funnel.steps)) == (0, {"kept": 0, "rejects": 0, "quarantine": 0}, 3)


def with_count(index: int, **given: object) -> Callable[[UnitRecord], UnitRecord]:
    def change(whole: UnitRecord) -> UnitRecord:
        counts = {**whole.counts, index: dataclasses.replace(whole.counts[index], **given)}  # type: ignore[arg-type]
        return dataclasses.replace(whole, counts=counts)

    return change


def with_staged(name: str, *rows: int) -> Callable[[UnitRecord], UnitRecord]:
    return lambda whole: dataclasses.replace(whole, staged={**whole.staged, name: fragments(*rows)})


def without_count(index: int) -> Callable[[UnitRecord], UnitRecord]:
    return lambda whole: dataclasses.replace(whole, counts={i: c for i, c in whole.counts.items() if i != index})


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda whole: dataclasses.replace(whole, rows_read=11), r"unit 1, steps\[0\] \(read\.jsonl\)"),
        (lambda whole: dataclasses.replace(whole, read_errors=0), r"unit 1, steps\[0\] \(read\.jsonl\)"),
        (with_count(0, kept=9), r"unit 1, steps\[0\] \(read\.jsonl\)"),
        (with_count(1, rows_in=9, kept=4), r"unit 1, steps\[1\] \(text\.length\)"),
        (with_count(1, dropped=Counter(min_words=4, max_words=1)), r"unit 1, steps\[1\] \(text\.length\)"),
        (with_count(1, quarantined=0), r"unit 1, steps\[1\] \(text\.length\)"),
        (with_count(2, rows_in=6, kept=4), r"unit 1, steps\[2\] \(dedup\.exact\)"),
        (without_count(2), r"unit 1, steps\[2\] \(dedup\.exact\)"),
        (with_staged("kept", 1, 1), "unit 1: got counted .*'kept': 3.* staged .*'kept': 2"),
        (with_staged("kept", 4), "unit 1: got"),
        (with_staged("kept"), "unit 1: got"),
        (with_staged("rejects", 5), "unit 1: got"),
        (with_staged("quarantine", 3), "unit 1: got"),
    ],
)
def test_a_mismatch_anywhere_names_unit_and_step(change: Callable[[UnitRecord], UnitRecord], place: str) -> None:
    rule = r"rows in = kept \+ dropped \+ quarantined; nothing was published"
    with pytest.raises(InternalError, match=f"{place}.*{rule}"):
        funnel_of(OPS, [record(0), change(record(1))])


def test_two_mistakes_that_cancel_out_are_still_seen() -> None:
    """A row too many in one unit and one too few in another."""
    more = with_staged("kept", 4)(record(0))
    with pytest.raises(InternalError, match="unit 0"):
        funnel_of(OPS, [more, with_staged("kept", 2)(record(1))])
