from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from headrace.loaders.order import Order
from headrace.loaders.source import Source
from headrace.loaders.stream import Stream
from headrace.storage.lake import Lake
from headrace.storage.open import open_version
from tests.loaders.conftest import NAME, NUM_ROWS

N = NUM_ROWS


@pytest.fixture
def stream(docs_lake: Lake) -> Stream:
    source = Source(open_version(docs_lake, f"{NAME}@1"), f"{NAME}@1", ["number"])
    return Stream(source, 5, True, 20, 10, False, "numpy", 2)


def told(stream: Stream, position: int, end: int | None, limit: int | None = None) -> tuple[list[int], list[int]]:
    """Rows, and the position after each batch."""
    taken = list(itertools.islice(stream.batches(position, end), limit))
    return [int(n) for batch in taken for n in batch.batch["number"]], [batch.position for batch in taken]


def wanted(stream: Stream, epochs: int) -> list[int]:
    orders = [Order(N, seed=5, epoch=epoch, block_rows=20, shuffle=stream.shuffle) for epoch in range(epochs)]
    return [int(row) for order in orders for row in order.rows(0, N)]


@pytest.mark.parametrize("num_threads", [0, 1, 2, 5])
@pytest.mark.parametrize("shuffle", [True, False])
def test_the_rows_are_the_order_and_nothing_else(stream: Stream, num_threads: int, shuffle: bool) -> None:
    stream = replace(stream, num_threads=num_threads, shuffle=shuffle)
    rows, _ = told(stream, 0, 3 * N)
    assert rows == wanted(stream, 3)


def test_positions_and_short_batches_at_the_border_of_epochs(stream: Stream) -> None:
    _, positions = told(stream, 0, 2 * N)
    steps = [after - before for before, after in itertools.pairwise([0, *positions])]
    assert steps == [*[10] * 100, 3] * 2
    assert positions[-1] == 2 * N


def test_drop_last_drops_the_short_batch_of_every_epoch(stream: Stream) -> None:
    rows, positions = told(replace(stream, drop_last=True), 0, 2 * N)
    assert positions == [*range(10, 1_001, 10), *range(N + 10, N + 1_001, 10)]
    assert rows == wanted(stream, 2)[: N - 3] + wanted(stream, 2)[N : 2 * N - 3]


@pytest.mark.parametrize("position", [1, N - 1, N, N + 1, 2 * N + 500])
def test_from_any_position(stream: Stream, position: int) -> None:
    rows, _ = told(stream, position, 3 * N)
    assert rows == wanted(stream, 3)[position:]


def test_without_end(stream: Stream) -> None:
    rows, positions = told(stream, N - 10, None, limit=250)
    assert rows == wanted(stream, 5)[N - 10 : positions[-1]]
    assert positions[-1] > 3 * N


def test_nothing_where_position_is_the_end(stream: Stream) -> None:
    assert told(stream, 2 * N, 2 * N) == ([], [])


def test_arrow_batches(stream: Stream) -> None:
    taken = list(replace(stream, output="arrow").batches(0, N))
    assert [n for one in taken for n in one.batch.column("number").to_pylist()] == wanted(stream, 1)
    assert {one.batch.num_rows for one in taken} == {10, 3}


@pytest.mark.parametrize("batch_size", [1, 7, 1_003, 5_000])
def test_batch_size_does_not_touch_the_order(stream: Stream, batch_size: int) -> None:
    rows, positions = told(replace(stream, batch_size=batch_size), 0, 2 * N)
    assert rows == wanted(stream, 2)
    assert len(positions) == 2 * -(-N // batch_size)
