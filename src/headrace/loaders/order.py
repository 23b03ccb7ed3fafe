"""The order of one epoch, a pure function of (number of rows, seed, epoch, block rows).  No I/O, no state.

    sample g of the epoch  ->  lane l = g % C, position p = g // C in the lane
    (l, p)                 ->  piece of the lane -> block of the dataset -> row

1. Rows are counted over the whole dataset; a block is `block_rows` consecutive rows, only the last one is shorter.
2. The permuted blocks, laid end to end, are a line of rows.  It is rotated by an amount of its own in each epoch and
   cut into C lanes whose lengths differ by one row at most.
3. A lane starts `phase` rows into its own range and comes round to it, so that lanes reach new blocks at different
   times and reading is smooth.
4. A piece is what a lane holds of a block, cut at the phase as well: consecutive rows, delivered in the order of their
   keyed hashes.  Pieces are what is read.

Batch size, threads and prefetching appear nowhere.  A batch of n <= C rows comes from n lanes, that is from n blocks.
Memory: the block permutation, 512 KB at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import gcd
from typing import NamedTuple

import numpy as np

from headrace.loaders.permutation import Permutation, Places, fold, shuffled

LANES = 64
"""Blocks that a batch draws from.  More would mix wider and hold more rows in memory (about 2.5 blocks a lane)."""

_BLOCKS_PER_LANE = 4  # at least, where there are rows enough: a small dataset gets shorter blocks
_PURPOSE_BLOCKS, _PURPOSE_ROTATION, _PURPOSE_ROWS = 1, 2, 3


class Piece(NamedTuple):
    """Consecutive rows of one block that one lane delivers one after the other."""

    lane: int
    start: int  # position in the lane of the first row that is delivered
    num_rows: int
    first_row: int  # row number in the dataset
    key: int | None  # of the order inside; None: as stored

    def offsets(self) -> Places:
        """Which of the consecutive rows is delivered first, second, ..."""
        return np.arange(self.num_rows) if self.key is None else shuffled(self.num_rows, self.key)


class Order:
    """One epoch over `num_rows` > 0 rows."""

    def __init__(self, num_rows: int, *, seed: int, epoch: int, block_rows: int, shuffle: bool = True) -> None:
        """Nothing is computed yet that depends on the number of rows."""
        self.num_rows, self.epoch, self.shuffle = num_rows, epoch, shuffle
        self.num_lanes = min(LANES, num_rows) if shuffle else 1
        self.block_rows = min(
            block_rows, max(1, num_rows // (self.num_lanes * _BLOCKS_PER_LANE)) if shuffle else block_rows
        )
        self._key = fold(seed, 0, epoch)  # 0: the only source; mixtures will number theirs
        self._num_full = num_rows // self.block_rows
        self._blocks = Permutation(self._num_full, fold(self._key, _PURPOSE_BLOCKS))
        self._rotation = fold(self._key, _PURPOSE_ROTATION) % num_rows

    def lane_length(self, lane: int) -> int:
        """Rows that this lane delivers in the epoch."""
        return self.num_rows // self.num_lanes + (lane < self.num_rows % self.num_lanes)

    def pieces(self, lane: int, position: int = 0) -> Iterator[Piece]:
        """What the lane reads from `position` on; the first piece may have begun before it."""
        length = self.lane_length(lane)
        while position < length:
            piece = self._piece(lane, position) if self.shuffle else self._stored(position)
            yield piece
            position = piece.start + piece.num_rows

    def rows(self, start: int, stop: int) -> Places:
        """Row numbers of the samples [start, stop) of this epoch, int64 [stop - start]."""
        rows = np.empty(max(0, stop - start), dtype=np.int64)
        for lane in range(self.num_lanes):
            first, last = positions(start, stop, lane, self.num_lanes)
            for piece in self.pieces(lane, first) if first < last else ():
                if piece.start >= last:
                    break
                a, b = max(first, piece.start), min(last, piece.start + piece.num_rows)
                places = slice(
                    a * self.num_lanes + lane - start, (b - 1) * self.num_lanes + lane - start + 1, self.num_lanes
                )
                rows[places] = piece.first_row + piece.offsets()[a - piece.start : b - piece.start]
        return rows

    def _stored(self, position: int) -> Piece:
        first = position - position % self.block_rows
        return Piece(0, first, min(self.block_rows, self.num_rows - first), first, None)

    def _piece(self, lane: int, position: int) -> Piece:
        length, total = self.lane_length(lane), self.num_rows
        start = lane * (total // self.num_lanes) + min(lane, total % self.num_lanes)  # of the lane on the line
        phase = (lane * lattice(self.num_lanes) % self.num_lanes) * min(self.block_rows, length) // self.num_lanes
        # `offset` counts rows of the lane as they lie on the line, where a piece is a plain interval [low, high).
        offset = (position + phase) % length
        on_line = (start + offset + self._rotation) % total
        number = on_line // self.block_rows
        block_low, block_high = number * self.block_rows, min((number + 1) * self.block_rows, total)
        low, high = max(offset - (on_line - block_low), 0), min(offset + (block_high - on_line), length)
        if low < phase <= offset:
            low = phase
        elif offset < phase < high:
            high = phase
        block = self._blocks.place(number) if number < self._num_full else number  # the short one always lies last
        first_row = block * self.block_rows + (on_line - (offset - low)) - block_low
        return Piece(lane, (low - phase) % length, high - low, first_row, fold(self._key, _PURPOSE_ROWS, first_row))


def positions(start: int, stop: int, lane: int, num_lanes: int) -> tuple[int, int]:
    """The positions [first, last) of a lane that fall into the samples [start, stop) of an epoch."""
    return -((lane - start) // num_lanes), -((lane - stop) // num_lanes)


@cache
def lattice(num_lanes: int) -> int:
    """A factor coprime to the number of lanes that spreads neighbours, and every rank's share of them, evenly.

    Searched near the golden section for the least clustering over strides of 1 to 16 lanes; part of the frozen order.
    """
    factors = [f for f in range(max(1, num_lanes // 3), num_lanes // 2 + 1) if gcd(f, num_lanes) == 1] or [1]

    def clustering(factor: int) -> float:
        worst = 0.0
        for stride in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16):
            steps = np.arange(1, max(2, num_lanes // stride))
            gaps = steps * stride * factor % num_lanes
            gaps = np.minimum(gaps, num_lanes - gaps)
            if gaps.any():
                worst = max(worst, float((num_lanes / (steps[gaps > 0] * gaps[gaps > 0])).max()))
        return worst

    return min(factors, key=clustering)
