"""Bytes of a file as blocks, decompressed by its ending; what breaks a stream is told, and what came before is kept.

Memory stays bounded: a block of zstd input is small, since four bytes of it can stand for 128 KiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from headrace.errors import MissingDependency

BLOCK_BYTES = 4 << 20
ENDINGS = (".gz", ".zst")
EXPECTED_RATIO = 4  # of a compressed file, for planning

_READ_BYTES = 64 << 10
_ZSTD_PIECE_BYTES = 4 << 10
_ZSTD_WINDOW_BYTES = 1 << 31  # what `zstd --long=31` writes
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class BrokenStream(Exception):
    """A compressed stream ended early or is damaged; caught by the reader, never seen by others."""

    def __init__(self, told: str) -> None:
        super().__init__(told)


def is_compressed(path: str) -> bool:
    """True where the ending names a compression."""
    return path.lower().endswith(ENDINGS)


def open_blocks(handle: BinaryIO, path: str) -> Iterator[bytes]:
    """The content in blocks of about BLOCK_BYTES, the last one shorter.  Raises BrokenStream after what was sound."""
    ending = path.lower()
    if ending.endswith(".gz"):
        return _gathered(_gunzip(handle))
    if ending.endswith(".zst"):
        return _gathered(_unzstd(handle))
    return iter(lambda: handle.read(BLOCK_BYTES), b"")


def _gathered(blocks: Iterator[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    held = 0
    try:
        for block in blocks:
            waiting.append(block)
            held += len(block)
            if held >= BLOCK_BYTES:
                yield b"".join(waiting)
                waiting, held = [], 0
    except BrokenStream:
        if waiting:
            yield b"".join(waiting)
        raise
    if waiting:
        yield b"".join(waiting)


def _gunzip(handle: BinaryIO) -> Iterator[bytes]:
    import zlib

    data, members, read = b"", 0, 0
    member = None
    while True:
        if not data:
            data = handle.read(_READ_BYTES)
            read += len(data)
            if not data:
                break
        if member is None:
            if members:
                data = data.lstrip(b"\0")  # some writers pad to a block
                if not data:
                    continue
            member = zlib.decompressobj(31)
        before = member.copy()
        try:
            out = member.decompress(data, BLOCK_BYTES)
            while len(out) == BLOCK_BYTES and not member.eof:
                yield out
                data, before = member.unconsumed_tail, member.copy()
                out = member.decompress(data, BLOCK_BYTES)
        except zlib.error as error:
            yield from _salvage(before, data)
            what = "damaged gzip stream" if members or read > _READ_BYTES else "not a gzip file, or a damaged one"
            raise BrokenStream(f"{what} near compressed byte {read - len(data)}: {error}") from error
        if out:
            yield out
        if member.eof:
            data, member, members = member.unused_data, None, members + 1
        else:
            data = member.unconsumed_tail
    if member is not None:
        raise BrokenStream(f"the gzip stream is cut off at compressed byte {read}")


def _salvage(member: Any, data: bytes) -> Iterator[bytes]:
    """What a damaged block gives before its damage: zlib keeps back the output of a call that fails."""
    import zlib

    out = bytearray()
    try:
        for at in range(len(data)):
            out += member.decompress(data[at : at + 1])
    except zlib.error:
        pass
    if out:
        yield bytes(out)


def _unzstd(handle: BinaryIO) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError as error:
        fix = "pip install 'headrace[pipelines]'"
        raise MissingDependency("reading .zst", "", "needs the package zstandard", fix) from error
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    frame, data, read = None, b"", 0
    while True:
        if not data:
            data = handle.read(_ZSTD_PIECE_BYTES)
            read += len(data)
            if not data:
                break
        frame = frame or decompressor.decompressobj()
        try:
            out = frame.decompress(data)
        except zstandard.ZstdError as error:
            is_first = read <= _ZSTD_PIECE_BYTES and not data.startswith(_ZSTD_MAGIC)
            what = "not a zstd file" if is_first else "damaged zstd stream"
            raise BrokenStream(f"{what} near compressed byte {read - len(data)}: {error}") from error
        if out:
            yield out
        if frame.eof:
            data, frame = frame.unused_data, None
        else:
            data = b""
    if frame is not None:
        raise BrokenStream(f"the zstd stream is cut off at compressed byte {read}")
