"""See `Exact`."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field

from headrace.operators.columns import text_buffers, text_column
from headrace.operators.shapes import SELECTION_SCHEMA, Global, MapFunction, Selection

_PLACE = "dedup.exact"
_KEY_BYTES = 16
_KEY = pa.field("key", pa.binary(_KEY_BYTES))


class Exact(Global):
    """Of all rows with the same text, the one with the smallest id stays.

    Two texts are taken for equal when their 128-bit hashes are; among 10 billion rows the chance that any two others
    share one is 1.5e-19.  `loose` compares lower-cased text with every run of white space as one space.
    The outcome depends on ids and texts only, not on the order of rows or of runs.

    Columns
        reads    text: string or large_string; a null text is no duplicate of anything
        writes   key: fixed_size_binary(16), null for a null text (scratch, not part of the output)
        rows     n -> k <= n; rule "duplicate", partner = id of the row that stays
    Cost: keys O(bytes), selection O(n log n) with up to 90 bytes a row besides the keys.  See the folder's README.
    Raises: DataError if the column is missing, is not string, or is not UTF-8.
    Source: ours; hash is XXH3 of 128 bits, seed 0.

    >>> step = Exact(normalize="loose")
    >>> keys = step.build()(pa.table({"text": ["A  rose", "a rose", "a nose"]}))
    >>> step.select(keys.append_column("id", [["b", "a", "c"]])).dropped.select(["row", "partner"]).to_pylist()
    [{'row': 0, 'partner': 'a'}]
    """

    column: str = Field("text", description="column that holds the text")
    normalize: Literal["none", "loose"] = Field("none", description="loose ignores case and amounts of white space")

    def build(self) -> MapFunction:
        """The key function; needs no optional package."""

        def exact(table: pa.Table) -> pa.Table:
            texts = text_column(table, self.column, _PLACE)
            if self.normalize == "loose":
                texts = _loose(texts)
            return pa.table([_keys(texts)], schema=pa.schema([_KEY]))

        return exact

    def select(self, keys: pa.Table) -> Selection:
        """Drop every row but the one with the smallest id from each group of equal keys."""
        rows, groups = _groups(keys.column("key"))
        # Candidates ordered by group, then id: the first of each group stays.
        ids = keys.column("id").take(pa.array(rows)).combine_chunks()
        order = pc.sort_indices(
            pa.table({"group": groups, "id": ids}), sort_keys=[("group", "ascending"), ("id", "ascending")]
        ).to_numpy()
        groups = groups[order]
        is_survivor = np.ones(len(groups), np.bool_)
        is_survivor[1:] = groups[1:] != groups[:-1]
        survivor = np.maximum.accumulate(np.where(is_survivor, np.arange(len(groups)), 0))
        lost = np.flatnonzero(~is_survivor)
        dropped_rows = rows[order[lost]]
        by_row = np.argsort(dropped_rows)
        partners = ids.take(pa.array(order[survivor[lost]][by_row])).cast(pa.string())
        num = len(lost)
        dropped = pa.table(
            [
                pa.array(dropped_rows[by_row]),
                pa.repeat(pa.scalar("duplicate"), num),
                pa.nulls(num, pa.float64()),
                pa.nulls(num, pa.float64()),
                pa.nulls(num, pa.string()),
                partners,
            ],
            schema=SELECTION_SCHEMA,
        )
        return Selection(dropped, {"rows": keys.num_rows, "groups": int(is_survivor.sum()), "dropped": num})


def _loose(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Lower case, white space squeezed and trimmed, all in Arrow."""
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(pc.utf8_lower(texts)))
    return pc.binary_join(words, pa.scalar(" ", pa.large_string()))


def _keys(texts: pa.LargeStringArray) -> pa.Array:
    buffers = text_buffers(texts)
    content = buffers.bytes.data
    digest = xxhash.xxh3_128_digest
    digests = b"".join([digest(content[start:end]) for start, end in pairwise(buffers.offsets.tolist())])
    keys = pa.Array.from_buffers(_KEY.type, len(texts), [None, pa.py_buffer(digests)])
    return pc.if_else(texts.is_valid(), keys, None) if texts.null_count else keys


def _groups(keys: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows whose key occurs more than once, ordered by key, and a number for the key of each.

    Sorts one half of the keys; only rows that share it are looked at in full.
    """
    first, second = _halves(keys)
    rows = np.arange(len(first), dtype=np.int64)
    if keys.null_count:
        rows = np.flatnonzero(keys.is_valid().to_numpy())
        first, second = first[rows], second[rows]
    order = np.argsort(first)
    shares = _with_a_neighbour(first[order])
    order = order[shares]
    order = order[np.lexsort((second[order], first[order]))]
    first, second = first[order], second[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    groups = np.cumsum(starts, dtype=np.int64)
    shares = _with_a_neighbour(groups)
    return rows[order[shares]], groups[shares]


def _halves(keys: pa.ChunkedArray) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The keys as two columns of integers; what stands under a null is arbitrary."""
    parts = [np.zeros((0, 2), np.uint64)]
    for chunk in keys.chunks:
        if len(chunk):
            start = chunk.offset * _KEY_BYTES
            parts.append(np.frombuffer(chunk.buffers()[1], np.uint64, 2 * len(chunk), start).reshape(-1, 2))
    both = np.concatenate(parts)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def _with_a_neighbour(ordered: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Marks the entries that are equal to the one before or behind."""
    marked = np.zeros(len(ordered), np.bool_)
    same = ordered[1:] == ordered[:-1]
    marked[1:] |= same
    marked[:-1] |= same
    return marked
