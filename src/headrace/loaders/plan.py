"""Which pieces are read together, and when: in the order in which the stream needs them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from headrace.loaders.order import Order, Piece, positions
from headrace.loaders.source import Group


def needed(order: Order, start: int) -> Iterator[Piece]:
    """All pieces from sample `start` of the epoch on, by the sample that needs each first."""
    lanes = [
        order.pieces(lane, positions(start, order.num_rows, lane, order.num_lanes)[0])
        for lane in range(order.num_lanes)
    ]
    return heapq.merge(*lanes, key=lambda piece: piece.start * order.num_lanes + piece.lane)


def grouped(pieces: Iterable[Piece], rows_a_read: Callable[[], int]) -> Iterator[Sequence[Piece]]:
    """Consecutive pieces, as many as fit in one read and at least one; the limit may change on the way."""
    group: list[Piece] = []
    num_rows = 0
    for piece in pieces:
        if group and num_rows + piece.num_rows > rows_a_read():
            yield group
            group, num_rows = [], 0
        group.append(piece)
        num_rows += piece.num_rows
    if group:
        yield group


def read_ahead(
    groups: Iterable[Sequence[Piece]], read: Callable[[Sequence[Piece]], Group], num_threads: int
) -> Generator[Group, None, None]:
    """The groups, read by `num_threads` threads (0: by the caller), in order, at most `num_threads` + 2 ahead.

    Closing the generator gives up what has not begun and waits for what has; an error comes out where its group would.
    """
    if num_threads == 0:
        yield from map(read, groups)
        return
    waiting: deque[Future[Group]] = deque()
    pool = ThreadPoolExecutor(num_threads, thread_name_prefix="headrace-read")
    try:
        for group in groups:
            waiting.append(pool.submit(read, group))
            if len(waiting) > num_threads + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
