"""The batches of a stream, from a position to an end: order, reads, chunks and columns put together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.loaders.assemble import Chunk, chunk_rows, chunks
from headrace.loaders.columns import Columns, gather
from headrace.loaders.order import Order
from headrace.loaders.plan import grouped, needed, read_ahead
from headrace.loaders.source import Source


class Taken(NamedTuple):
    """A batch, and the position of the stream once the trainer has it."""

    batch: Any
    position: int


@dataclass(frozen=True)
class Stream:
    """Everything that decides what the batches are and how they are made, but for where they begin."""

    source: Source
    seed: int
    shuffle: bool
    block_rows: int
    batch_size: int
    drop_last: bool
    output: str  # numpy, torch or arrow
    num_threads: int

    def order(self, epoch: int) -> Order:
        """The order of one epoch."""
        return Order(
            self.source.num_rows, seed=self.seed, epoch=epoch, block_rows=self.block_rows, shuffle=self.shuffle
        )

    def batches(self, position: int, end: int | None) -> Generator[Taken, None, None]:
        """Batches from `position` to `end` (None: for ever); none crosses the border of an epoch.

        The reads of the next epoch begin before the last batches of this one are taken.
        """
        if end is not None and position >= end:
            return
        num_rows = self.source.num_rows
        last = None if end is None else end // num_rows
        first = position // num_rows
        starts = self._starts(first, last, position)
        for_reading, for_chunks = itertools.tee(starts)
        pieces = itertools.chain.from_iterable(
            grouped(needed(order, start), self.source.rows_a_read) for order, start in for_reading
        )
        groups = read_ahead(pieces, self.source.read, self.num_threads)
        try:
            for order, start in for_chunks:
                for chunk in chunks(order, start, groups, self._next_rows):
                    yield from self._cut(chunk, order.epoch * num_rows)
        finally:
            groups.close()

    def _starts(self, first: int, last: int | None, position: int) -> Iterator[tuple[Order, int]]:
        epochs = itertools.count(first) if last is None else iter(range(first, last))
        for epoch in epochs:
            yield self.order(epoch), max(0, position - epoch * self.source.num_rows)

    def _next_rows(self) -> int:
        return chunk_rows(self.batch_size, self.source.row_bytes)

    def _cut(self, chunk: Chunk, epoch_start: int) -> Iterator[Taken]:
        total = chunk.stop - chunk.start
        slice_of: Callable[[int, int], Any]
        if self.output == "arrow":
            rows = gather(chunk, self.source.columns)
            slice_of = lambda start, stop: rows.slice(start, stop - start)  # noqa: E731
        else:
            slice_of = Columns(chunk, self.source.schema, self.source.reference, self.output == "torch").batch
        for start in range(0, total, self.batch_size):
            stop = min(start + self.batch_size, total)
            if self.drop_last and stop - start < self.batch_size:  # only an epoch's last chunk has a short batch
                return
            yield Taken(slice_of(start, stop), epoch_start + chunk.start + stop)
