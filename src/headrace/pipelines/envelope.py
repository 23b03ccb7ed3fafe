"""The envelope: a unit on its way as one Arrow row, its tables as IPC streams in `large_binary` cells.

It travels between stages on Ray Data and between a worker and its isolated child.
"""

from __future__ import annotations

import json

import pyarrow as pa

from headrace.pipelines.chain import UnitState
from headrace.pipelines.records import TABLES
from headrace.pipelines.steps import StepCount
from headrace.pipelines.tables import table_from_bytes, table_to_bytes


def seal(state: UnitState, description: str = "") -> pa.Table:
    """One row: unit (description), counts (JSON), kept, rejects, quarantine (IPC)."""
    numbers = {
        "unit": state.unit,
        "counts": {str(index): count.to_plain() for index, count in state.counts.items()},
        "read": [state.rows_read, state.read_errors, state.bytes_read, state.renamed],
        "started": state.started,
    }
    cells = {
        "unit": pa.array([description], pa.large_string()),
        "counts": pa.array([json.dumps(numbers)], pa.large_string()),
    }
    for name in TABLES:
        cells[name] = pa.array([table_to_bytes(getattr(state, name))], pa.large_binary())
    return pa.table(cells)


def unseal(envelope: pa.Table) -> UnitState:
    """The state of a one-row envelope."""
    numbers = json.loads(envelope["counts"][0].as_py())
    tables = {name: table_from_bytes(envelope[name][0].as_buffer()) for name in TABLES}
    rows_read, read_errors, bytes_read, renamed = numbers["read"]
    return UnitState(
        numbers["unit"],
        counts={int(index): StepCount.from_plain(count) for index, count in numbers["counts"].items()},
        rows_read=rows_read,
        read_errors=read_errors,
        bytes_read=bytes_read,
        renamed=renamed,
        started=numbers["started"],
        **tables,
    )
