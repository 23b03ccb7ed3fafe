from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from headrace.loaders.order import Order, Piece
from headrace.loaders.plan import grouped, needed, read_ahead
from headrace.loaders.source import Group
from tests.loaders.conftest import reading_threads

EMPTY = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


def pieces(*lengths: int) -> list[Piece]:
    return [Piece(0, sum(lengths[:i]), length, sum(lengths[:i]), None) for i, length in enumerate(lengths)]


def read(group: Sequence[Piece]) -> Group:
    return Group(group, [], EMPTY)


def test_needed_gives_every_piece_by_its_first_sample() -> None:
    order = Order(5_000, seed=0, epoch=0, block_rows=50)
    told = list(needed(order, 0))
    assert sum(piece.num_rows for piece in told) == 5_000
    samples = [piece.start * order.num_lanes + piece.lane for piece in told]
    assert samples == sorted(samples)


def test_needed_from_the_middle_leaves_out_what_is_past() -> None:
    order = Order(5_000, seed=0, epoch=0, block_rows=50)
    told = list(needed(order, 3_210))
    assert all((piece.start + piece.num_rows - 1) * order.num_lanes + piece.lane >= 3_210 for piece in told)
    covered = sum(piece.num_rows for piece in told)
    assert 5_000 - 3_210 <= covered <= 5_000 - 3_210 + order.num_lanes * order.block_rows


def test_grouped_fills_reads_up_to_the_limit() -> None:
    groups = list(grouped(pieces(5, 5, 5, 20, 1, 1), lambda: 10))
    assert [[piece.num_rows for piece in group] for group in groups] == [[5, 5], [5], [20], [1, 1]]


def test_grouped_of_nothing_is_nothing() -> None:
    assert list(grouped([], lambda: 10)) == []


@pytest.mark.parametrize("num_threads", [0, 1, 2, 5])
def test_read_ahead_keeps_the_order(num_threads: int) -> None:
    groups = list(grouped(pieces(*range(1, 60)), lambda: 1))
    assert [group.pieces for group in read_ahead(groups, read, num_threads)] == groups


def test_read_ahead_is_bounded() -> None:
    begun: list[Sequence[Piece]] = []

    def endless() -> Iterator[list[Piece]]:
        while True:
            begun.append([])
            yield pieces(1)

    ahead = read_ahead(endless(), read, 2)
    for taken in range(1, 20):
        next(ahead)
        assert len(begun) <= taken + 3
    ahead.close()
    assert reading_threads() == []


@pytest.mark.parametrize("num_threads", [0, 2])
def test_an_error_comes_out_where_its_group_would(num_threads: int) -> None:
    groups = list(grouped(pieces(*[1] * 10), lambda: 1))

    def failing(group: Sequence[Piece]) -> Group:
        if group is groups[4]:
            raise OSError("gone")
        return read(group)

    ahead = read_ahead(groups, failing, num_threads)
    assert [next(ahead).pieces for _ in range(4)] == groups[:4]
    with pytest.raises(OSError, match="gone"):
        next(ahead)
    assert reading_threads() == []


def test_close_gives_up_what_has_not_begun() -> None:
    may_read = threading.Event()
    num_read = 0

    def slow(group: Sequence[Piece]) -> Group:
        nonlocal num_read
        num_read += 1
        if num_read > 1:
            may_read.wait(10)
        return read(group)

    ahead = read_ahead(grouped(pieces(*[1] * 50), lambda: 1), slow, 1)
    next(ahead)
    may_read.set()
    ahead.close()
    assert num_read < 50
    assert reading_threads() == []
