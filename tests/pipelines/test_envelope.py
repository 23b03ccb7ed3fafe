"""A unit on its way as one row."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from headrace.pipelines.chain import UnitState
from headrace.pipelines.envelope import seal, unseal
from headrace.pipelines.records import TABLES
from headrace.pipelines.steps import StepCount, apply_step
from tests.pipelines.plain import Raises, Without, built, documents


def test_a_state_survives_its_envelope_and_a_trip_through_ipc() -> None:
    rows = documents("a", "drop", "bad", "ä")
    dropped = apply_step(built(Without(word="drop")), rows, "run")
    failed = apply_step(built(Raises(), 2), dropped.kept, "run")
    state = UnitState(
        12,
        failed.kept,
        dropped.rejects,
        failed.quarantine,
        {0: StepCount(5, 4, quarantined=1), 1: dropped.count, 2: failed.count},
        rows_read=4,
        read_errors=1,
        bytes_read=99,
        started=12.5,
    )
    envelope = seal(state, '{"unit": 12}')
    assert envelope.num_rows == 1
    assert envelope["unit"].to_pylist() == ['{"unit": 12}']
    assert {str(envelope.schema.field(name).type) for name in TABLES} == {"large_binary"}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, envelope.schema) as writer:
        writer.write_table(envelope)
    again = unseal(pa.ipc.open_stream(sink.getvalue()).read_all())
    for name in TABLES:
        assert getattr(again, name).equals(getattr(state, name))
        assert getattr(again, name).num_rows == {"kept": 2, "rejects": 1, "quarantine": 1}[name]
    assert again.counts == state.counts
    assert again.counts[1].dropped == Counter(without=1)
    assert (again.unit, again.rows_read, again.read_errors, again.bytes_read, again.started) == (12, 4, 1, 99, 12.5)


def test_an_empty_state_keeps_its_columns() -> None:
    again = unseal(seal(UnitState(0, documents())))
    assert again.kept.schema == documents().schema
    assert again.rejects.num_rows == again.quarantine.num_rows == 0
