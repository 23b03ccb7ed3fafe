from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.loaders.order import LANES, Order, lattice, positions

SIZES = [*range(1, 140), 255, 256, 257, 1_000, 8_191, 8_192, 8_193, 12_345]


def whole(num_rows: int, *, seed: int = 3, epoch: int = 0, block_rows: int = 256, shuffle: bool = True) -> list[int]:
    order = Order(num_rows, seed=seed, epoch=epoch, block_rows=block_rows, shuffle=shuffle)
    return [int(row) for row in order.rows(0, num_rows)]


@pytest.mark.parametrize("block_rows", [1, 7, 256])
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_is_every_row_once(block_rows: int, shuffle: bool) -> None:
    sizes = [*SIZES, 65_535, 65_536, 65_537, 100_001] if block_rows > 100 else SIZES
    wrong = [n for n in sizes if sorted(whole(n, block_rows=block_rows, shuffle=shuffle)) != list(range(n))]
    assert wrong == []


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3_000), st.integers(1, 300), st.integers(-5, 5), st.integers(0, 4), st.data())
def test_any_stretch_is_the_same_as_in_the_whole(
    n: int, block_rows: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    order = Order(n, seed=seed, epoch=epoch, block_rows=block_rows)
    rows = whole(n, seed=seed, epoch=epoch, block_rows=block_rows)
    assert sorted(rows) == list(range(n))
    assert order.rows(start, stop).tolist() == rows[start:stop]


@pytest.mark.parametrize("num_rows", [1, 31, 33, 1_000, 32_769])
def test_pieces_tile_their_lane(num_rows: int) -> None:
    order = Order(num_rows, seed=1, epoch=2, block_rows=100)
    assert sum(order.lane_length(lane) for lane in range(order.num_lanes)) == num_rows
    for lane in range(order.num_lanes):
        position = 0
        for piece in order.pieces(lane):
            assert piece.start == position
            assert 0 < piece.num_rows <= order.block_rows
            assert piece.first_row // order.block_rows == (piece.first_row + piece.num_rows - 1) // order.block_rows
            assert sorted(piece.offsets().tolist()) == list(range(piece.num_rows))
            position += piece.num_rows
        assert position == order.lane_length(lane)


def test_pieces_from_the_middle_begin_with_the_piece_that_holds_it() -> None:
    order = Order(5_000, seed=1, epoch=0, block_rows=64)
    pieces = list(order.pieces(3))
    for position in range(order.lane_length(3)):
        rest = [piece for piece in pieces if piece.start + piece.num_rows > position]
        assert list(order.pieces(3, position)) == rest


def test_stored_order_without_shuffle() -> None:
    assert whole(1_000, shuffle=False, block_rows=64) == list(range(1_000))


def test_epochs_and_seeds_differ() -> None:
    orders = [whole(5_000, seed=seed, epoch=epoch) for seed in (0, 1) for epoch in (0, 1)]
    for first in range(4):
        for second in range(first):
            assert sum(a == b for a, b in zip(orders[first], orders[second], strict=True)) < 20  # 1 is expected


def test_a_batch_comes_from_as_many_blocks_as_it_has_rows() -> None:
    order = Order(1_000_000, seed=5, epoch=0, block_rows=256)
    for start in range(0, 200_000, 9_999):
        blocks = np.unique(order.rows(start, start + LANES) // 256)
        assert len(blocks) >= LANES - 4  # a block can be cut between two lanes


def test_rows_that_lie_together_are_delivered_apart() -> None:
    """Neighbours in storage come a lane's length of a block apart: mean gap of about R * C / 3 samples."""
    rows = np.array(whole(100_000))
    place = np.empty(100_000, dtype=np.int64)
    place[rows] = np.arange(100_000)
    gaps = np.abs(np.diff(place))
    assert np.median(gaps) > 1_000
    assert (gaps < LANES).mean() < 0.01


def test_small_datasets_get_shorter_blocks() -> None:
    assert Order(1_000, seed=0, epoch=0, block_rows=256).block_rows == 1_000 // (LANES * 4)
    assert Order(100_000, seed=0, epoch=0, block_rows=256).block_rows == 256


def test_golden_vectors() -> None:
    """Frozen: a change here reorders every stream that was ever saved."""
    first = [86, 56, 43, 22, 61, 84, 30, 14, 73, 97, 80, 85, 76, 40, 87, 49, 9, 96, 5, 92]
    assert Order(100, seed=0, epoch=0, block_rows=256).rows(0, 20).tolist() == first
    middle = [121137, 420516, 763609, 166219, 126717, 95838, 579407, 911220, 116548, 507912]
    assert Order(1_000_000, seed=7, epoch=3, block_rows=256).rows(500_000, 500_010).tolist() == middle
    huge = [818767826, 1636102719, 2224534324, 899133544, 9404333323, 4422390844]
    assert Order(10**10, seed=7, epoch=0, block_rows=64).rows(0, 6).tolist() == huge
    last = [36884, 23100, 13476, 9252, 32763, 30498]
    assert Order(50_001, seed=1, epoch=1, block_rows=256).rows(49_995, 50_001).tolist() == last
    epoch = Order(50_001, seed=1, epoch=0, block_rows=256).rows(0, 50_001).astype("<i8").tobytes()
    assert hashlib.sha256(epoch).hexdigest() == "afd22d7ec86bf94ef7cea149965a22ced208dcaf6efd2cc3f639ed7a25049fa1"


def test_a_billion_rows_start_at_once() -> None:
    lattice.cache_clear()
    took = []
    for seed in range(5):
        began = time.perf_counter()
        order = Order(10**9, seed=seed, epoch=2, block_rows=256)
        rows = order.rows(500_000_000, 500_001_024)
        took.append(time.perf_counter() - began)
        assert len(np.unique(rows)) == 1_024
    assert min(took) < 0.05


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 40))
def test_positions_count_the_samples_of_a_lane(start: int, length: int, num_lanes: int) -> None:
    for lane in range(num_lanes):
        wanted = [sample // num_lanes for sample in range(start, start + length) if sample % num_lanes == lane]
        first, last = positions(start, start + length, lane, num_lanes)
        assert list(range(first, last)) == wanted


def test_lattice_meets_every_lane() -> None:
    for num_lanes in range(1, 70):
        assert len({lane * lattice(num_lanes) % num_lanes for lane in range(num_lanes)}) == num_lanes
