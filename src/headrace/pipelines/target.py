"""The three datasets that a run publishes to: created empty, or widened by the columns that are new."""

from __future__ import annotations

import pyarrow as pa

from headrace.errors import DataError
from headrace.storage.commit import create_target
from headrace.storage.contract import QUARANTINE, REJECTS, Contract, stored_contract
from headrace.storage.head import head_or_none
from headrace.storage.lake import Lake
from headrace.storage.widen import add_null_columns


def prepare_targets(lake: Lake, output: str, schema: pa.Schema) -> None:
    """Create what is missing; give an existing output the columns it does not have yet, null in older rows.

    Raises DataError where an existing column has another type.
    """
    head = head_or_none(lake, output)
    if head is None:
        create_target(lake, output, Contract(schema))
        head = head_or_none(lake, output)
        assert head is not None
    has = stored_contract(head.schema).schema
    new = []
    for wanted in schema:
        index = has.get_field_index(wanted.name)
        if index < 0:
            new.append(wanted.with_nullable(True))
        elif has.field(index).type != wanted.type:
            rule = f"the dataset has it as {has.field(index).type}"
            fix = "publish to another dataset, or cast the column in the pipeline"
            raise DataError(f"dataset {output}, column {wanted.name!r}", str(wanted.type), rule, fix)
    if new:
        add_null_columns(lake, output, new)
    create_target(lake, f"{output}.rejects", Contract(REJECTS, key=None))
    create_target(lake, f"{output}.quarantine", Contract(QUARANTINE, key=None))


def fit(table: pa.Table, contract: Contract) -> pa.Table:
    """The rows with the dataset's columns: those that this pipeline does not give are null."""
    columns = []
    for wanted in contract.schema:
        if wanted.name in table.column_names:
            columns.append(table[wanted.name])
        else:
            columns.append(pa.nulls(table.num_rows, wanted.type))
    return pa.Table.from_arrays(columns, schema=pa.schema([f.remove_metadata() for f in contract.schema]))
