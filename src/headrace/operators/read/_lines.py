"""Cut a stream of bytes into chunks of whole lines.

A part owns the lines that start in [start, stop): so each line belongs to exactly one part, however a file is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.operators.read._streams import BLOCK_BYTES, BrokenStream
from headrace.operators.shapes import RAW_LIMIT_BYTES

LINE_LIMIT_BYTES = 1 << 30

_NEWLINE, _RETURN = 10, 13
_SCAN_BYTES = 256 << 10
_NONE = np.zeros(0, np.int64)


class Chunk(NamedTuple):
    """Whole lines, or what is wrong with the bytes that follow: then `data` is only their beginning."""

    offset: int  # of the first byte in the stream
    data: bytearray
    error: str = ""


class Lines(NamedTuple):
    """Where the lines of a chunk are that are not empty, without their line ends."""

    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]  # 0-based, among all lines of the chunk
    total: int  # with the empty ones


def find_lines(data: bytearray | memoryview) -> Lines:
    """The lines of a chunk; LF and CRLF end a line, and the last one needs no end."""
    array = np.frombuffer(data, np.uint8)
    windows = range(0, len(array), _SCAN_BYTES)  # small enough for the cache: half the time
    ends = np.concatenate([np.flatnonzero(array[at : at + _SCAN_BYTES] == _NEWLINE) + at for at in windows] or [_NONE])
    if len(array) and array[-1] != _NEWLINE:
        ends = np.append(ends, len(array))
    starts = np.empty_like(ends)
    starts[:1], starts[1:] = 0, ends[:-1] + 1
    ends = ends - ((ends > starts) & (array[ends - 1] == _RETURN))
    filled = np.flatnonzero(ends > starts)
    return Lines(starts[filled], ends[filled], filled, len(starts))


def first_line_at(handle: BinaryIO, start: int, stop: int) -> int:
    """Offset of the first line that starts at `start` or later, the handle placed there; `stop` where there is none."""
    if start == 0:
        return 0
    at = start - 1
    handle.seek(at)
    while at < stop and (block := handle.read(_SCAN_BYTES)):
        found = block.find(b"\n")
        if found >= 0:
            at += found + 1
            handle.seek(at)
            return min(at, stop)
        at += len(block)
    return stop


def count_newlines(handle: BinaryIO, stop: int) -> int:
    """Newlines before `stop`: the lines that came before a part.  Leaves the handle where it was."""
    place, count, at = handle.tell(), 0, 0
    handle.seek(0)
    while at < stop and (block := handle.read(min(BLOCK_BYTES, stop - at))):
        count += block.count(b"\n")
        at += len(block)
    handle.seek(place)
    return count


def cut_lines(blocks: Iterator[bytes], offset: int, stop: int | None = None) -> Iterator[Chunk]:
    """Chunks of whole lines from `offset`, which is a line's start; only lines that start before `stop`.

    A line longer than LINE_LIMIT_BYTES, and what follows where the stream breaks, come as a chunk with an error.
    """
    held = bytearray()  # handed out as it is and never copied: one line may be most of the memory there is
    skipped = 0  # bytes of an over-long line that are dropped already
    try:
        for block in blocks:
            at = offset + skipped + len(held)
            is_last = False
            cut = 0
            if stop is not None and at + len(block) >= stop:
                cut = block.find(b"\n", max(stop - 1 - at, 0)) + 1
                is_last = cut > 0
            view = memoryview(block)
            if skipped:
                over = block.find(b"\n") + 1
                if not over:
                    skipped += len(block)
                    continue
                yield Chunk(offset, held, f"the line is longer than {LINE_LIMIT_BYTES} bytes")
                offset, skipped, held = at + over, 0, bytearray()
                if stop is not None and offset >= stop:
                    return
                view, cut = view[over:], max(cut - over, 0)
            if not is_last:
                cut = block.rfind(b"\n") + 1 - (len(block) - len(view))
            if cut <= 0:
                held += view
                if len(held) > LINE_LIMIT_BYTES:
                    skipped = len(held) - RAW_LIMIT_BYTES
                    del held[RAW_LIMIT_BYTES:]
                continue
            held += view[:cut]
            yield Chunk(offset, held)
            if is_last:
                return
            offset, held = offset + len(held), bytearray(view[cut:])
    except BrokenStream as error:
        yield Chunk(offset, held, str(error))
        return
    if skipped:
        yield Chunk(offset, held, f"the line is longer than {LINE_LIMIT_BYTES} bytes")
    elif held:
        yield Chunk(offset, held)
