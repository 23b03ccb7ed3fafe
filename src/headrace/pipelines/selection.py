"""The barrier of a global step: keys of all rows in, one create-only selection out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from headrace.operators.shapes import SELECTION_SCHEMA, Global
from headrace.pipelines.records import load_records
from headrace.pipelines.tables import table_from_bytes, table_to_bytes
from headrace.storage.lake import Lake
from headrace.storage.objects import ObjectStore


@dataclass(frozen=True)
class UnitSelection:
    """What a global step drops of one unit: sorted positions, and a verdict and partner for each."""

    rows: pa.Array
    verdict: pa.Array
    partner: pa.Array


def selection_key(work: str) -> str:
    """Object key of a segment's selection."""
    return f"{work}/selection.arrow"


def make_selection(objects: ObjectStore, work: str, num_units: int, operator: Global) -> None:
    """Decide once over the keys of all units; a stored selection is left alone."""
    if objects.get_or_none(selection_key(work)) is not None:
        return
    tables, sizes = [], []
    for record in load_records(objects, work, num_units):
        keys = table_from_bytes(objects.get(record.scratch["keys"][0]))
        tables.append(keys)
        sizes.append(keys.num_rows)
    keys = pa.concat_tables(tables).combine_chunks() if tables else None
    dropped = SELECTION_SCHEMA.empty_table()
    if keys is not None and keys.num_rows:
        dropped = operator.select(keys).dropped.cast(SELECTION_SCHEMA).sort_by("row")
    first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]) if sizes else np.zeros(1, np.int64)
    row = dropped["row"].to_numpy()
    unit = np.searchsorted(first, row, side="right") - 1
    local = dropped.set_column(0, SELECTION_SCHEMA.field(0), pa.array(row - first[unit], pa.int64()))
    objects.put_once(selection_key(work), table_to_bytes(local.add_column(0, "unit", pa.array(unit, pa.int64()))))


@lru_cache(maxsize=2)
def _load(lake: Lake, work: str) -> pa.Table:
    return table_from_bytes(lake.objects.get(selection_key(work)))


def selection_of(lake: Lake, work: str, unit: int) -> UnitSelection:
    """The part of a segment's selection that falls on one unit."""
    table = _load(lake, work)
    units = table["unit"].to_numpy()
    low, high = np.searchsorted(units, [unit, unit + 1])
    return split_selection(table.slice(low, high - low))


def split_selection(dropped: pa.Table) -> UnitSelection:
    """A selection's table (SELECTION_SCHEMA, sorted by row) as rows, verdicts and partners."""
    mine = dropped.combine_chunks()
    flat = {name: mine[name].combine_chunks() for name in mine.column_names}
    names = ["rule", "value", "threshold", "note"]
    verdict = pa.StructArray.from_arrays([flat[name] for name in names], names=names)
    return UnitSelection(flat["row"], verdict, flat["partner"])
