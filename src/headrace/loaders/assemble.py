"""From groups as they were read to consecutive samples of the stream.

A chunk is a stretch of consecutive samples that is gathered in one go; batches are slices of it.  It is a whole number
of batches, about a thousand rows: one gather costs much the same for 32 rows as for 1,024.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from headrace.loaders.order import Order, Piece, positions
from headrace.loaders.permutation import Places
from headrace.loaders.source import Group

_CHUNK_ROWS = 1_024
_CHUNK_BYTES = 8 * 2**20


class Part(NamedTuple):
    """What a chunk takes from one group: row `source[i]` of the group becomes row `target[i]` of the chunk."""

    group: Group
    source: Places
    target: Places


class Chunk(NamedTuple):
    """The samples [start, stop) of an epoch."""

    start: int
    stop: int
    parts: list[Part]


class _Held(NamedTuple):
    piece: Piece
    group: Group
    places: Places


def chunk_rows(batch_size: int, row_bytes: float) -> int:
    """Rows of a chunk: a whole number of batches, one at least; one while the size of a row is not known."""
    if not row_bytes:
        return batch_size
    return batch_size * max(1, int(min(_CHUNK_ROWS, _CHUNK_BYTES / row_bytes)) // batch_size)


def chunks(order: Order, start: int, groups: Iterator[Group], next_rows: Callable[[], int]) -> Iterator[Chunk]:
    """The rest of an epoch from sample `start` on; `groups` must come in the order of need."""
    lanes: list[deque[_Held]] = [deque() for _ in range(order.num_lanes)]
    covered = np.zeros(order.num_lanes, dtype=np.int64)  # positions of each lane below this have been read
    while start < order.num_rows:
        stop = min(start + next_rows(), order.num_rows)
        spans = [positions(start, stop, lane, order.num_lanes) for lane in range(order.num_lanes)]
        last = np.array([span[1] for span in spans])
        has_rows = np.array([span[0] < span[1] for span in spans])
        while (has_rows & (covered < last)).any():
            group = next(groups)
            for piece, places in zip(group.pieces, group.places, strict=True):
                lanes[piece.lane].append(_Held(piece, group, places))
                covered[piece.lane] = piece.start + piece.num_rows
        yield Chunk(start, stop, _parts(lanes, spans, start))
        start = stop


def _parts(lanes: list[deque[_Held]], spans: list[tuple[int, int]], start: int) -> list[Part]:
    taken: dict[int, tuple[Group, list[Places], list[Places]]] = {}
    for lane, (held, (first, last)) in enumerate(zip(lanes, spans, strict=True)):
        while first < last:
            piece, group, places = held[0]
            end = min(last, piece.start + piece.num_rows)
            _, sources, targets = taken.setdefault(id(group), (group, [], []))
            sources.append(places[first - piece.start : end - piece.start])
            targets.append(np.arange(first, end) * len(lanes) + (lane - start))
            if end == piece.start + piece.num_rows:
                held.popleft()  # the group's memory goes with the last of its pieces
            first = end
    return [Part(group, np.concatenate(a), np.concatenate(b)) for group, a, b in taken.values()]
