from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from headrace.loaders.assemble import Chunk, chunk_rows, chunks
from headrace.loaders.order import Order
from headrace.loaders.plan import grouped, needed
from headrace.loaders.source import Group


def groups(order: Order, start: int, rows_a_read: int) -> Iterator[Group]:
    """What a source would read: the row number is the content."""
    for pieces in grouped(needed(order, start), lambda: rows_a_read):
        numbers = np.concatenate([np.arange(p.first_row, p.first_row + p.num_rows) for p in pieces])
        bases = np.cumsum([0, *[p.num_rows for p in pieces]])
        places = [base + piece.offsets() for base, piece in zip(bases, pieces, strict=False)]
        yield Group(pieces, places, pa.RecordBatch.from_arrays([pa.array(numbers)], names=["number"]))


def numbers(chunk: Chunk) -> list[int]:
    out = np.full(chunk.stop - chunk.start, -1)
    for part in chunk.parts:
        out[part.target] = part.group.rows.column(0).to_numpy()[part.source]
    return [int(number) for number in out]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("num_rows", [1, 31, 100, 5_000])
@pytest.mark.parametrize("rows_a_read", [1, 300])
@pytest.mark.parametrize("step", [1, 7, 1_024])
def test_chunks_are_the_order(shuffle: bool, num_rows: int, rows_a_read: int, step: int) -> None:
    order = Order(num_rows, seed=1, epoch=0, block_rows=40, shuffle=shuffle)
    for start in (0, num_rows // 3, num_rows - 1):
        rest = list(chunks(order, start, groups(order, start, rows_a_read), lambda: step))
        assert [chunk.start for chunk in rest] == list(range(start, num_rows, step))
        assert [n for chunk in rest for n in numbers(chunk)] == order.rows(start, num_rows).tolist()


def test_reads_no_further_than_it_must() -> None:
    order = Order(100_000, seed=1, epoch=0, block_rows=256)
    num_read = 0

    def counted() -> Iterator[Group]:
        nonlocal num_read
        for group in groups(order, 0, 256):
            num_read += group.rows.num_rows
            yield group

    first = next(iter(chunks(order, 0, counted(), lambda: 32)))
    assert (first.start, first.stop) == (0, 32)
    assert num_read <= order.num_lanes * 256


def test_chunk_rows_is_whole_batches_within_the_byte_limit() -> None:
    assert chunk_rows(32, 0.0) == 32
    assert chunk_rows(32, 4_096.0) == 1_024
    assert chunk_rows(100, 4_096.0) == 1_000
    assert chunk_rows(5_000, 4_096.0) == 5_000
    assert chunk_rows(32, 2.0**17) == 64
    assert chunk_rows(32, 2.0**30) == 32
