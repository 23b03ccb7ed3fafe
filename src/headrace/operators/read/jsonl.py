"""See `Jsonl`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator

from headrace.operators.read._base import FileReader
from headrace.operators.read._files import DANGLING, open_planned
from headrace.operators.read._json_fast import decode_fast
from headrace.operators.read._json_shape import columns_of
from headrace.operators.read._json_slow import BadLine, Decoded, decode_slow, parse_line
from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._lines import Lines, count_newlines, cut_lines, find_lines, first_line_at
from headrace.operators.read._rows import Rows
from headrace.operators.read._streams import EXPECTED_RATIO, BrokenStream, is_compressed, open_blocks
from headrace.operators.read._types import declared_type
from headrace.operators.shapes import InputFile, InputPart, ReadBatch

LOOK_BYTES = 1 << 20  # of every file, for the schema
LOOK_BUDGET_BYTES = 256 << 20  # of all files together; after it each gets LOOK_LEAST_BYTES
LOOK_LEAST_BYTES = 64 << 10
FIRST_LINE_BYTES = 64 << 20  # a first line that is longer than the look

_PIECES = 8
_PIECE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"


class Jsonl(FileReader):
    r"""Each line becomes one row: a JSON object with a text and any other keys.

    Keys that a look at the beginning of every file did not show go to `extra` as JSON text.  A line that is no object,
    has no text, or has a value that its column's type does not hold is an error row.  Plain files are cut into parts by
    bytes; a .gz or .zst file is one part.  A declared column keeps its type whatever the look shows.

    Columns
        reads    lines of UTF-8, LF or CRLF; empty ones are skipped
        writes   id, text: large_string, source, source_file, source_offset (byte in the decompressed file), extra,
                 and the lines' other keys
        rows     1 line -> 1 row or 1 error
    Cost: CPU, O(bytes), memory about 4 times the longest line; see README.md in this folder for MB/s.
    Raises: SpecError if root is missing, nothing matches, or no line looked at has `text_column`; InputChanged if a
        file is not the planned one; MissingDependency for .zst without the extra `pipelines`.
    Source: ours.

    >>> import pathlib, tempfile
    >>> root = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(root.name, "a.jsonl").write_text('{"id": "a", "text": "Weir", "year": 1894}\n[]\n')
    >>> reader = Jsonl(root=root.name, source="notes")
    >>> part = reader.parts(reader.files()[0], 1 << 20)[0]
    >>> rows, errors, _ = next(reader.build()(part, reader.schema([part.file])))
    >>> rows.select(["id", "text", "source", "year"]).to_pylist()
    [{'id': 'a', 'text': 'Weir', 'source': 'notes', 'year': 1894}]
    >>> errors.select(["line", "source_offset", "error"]).to_pylist()
    [{'line': 2, 'source_offset': 42, 'error': 'an array instead of a JSON object'}]
    >>> root.cleanup()
    """

    include: list[str] = Field(
        default_factory=lambda: ["**/*.jsonl", "**/*.jsonl.gz", "**/*.jsonl.zst"],
        min_length=1,
        description="globs relative to root",
    )
    id_column: str | None = Field(
        "auto", description="key with the row's own id; auto: `id` where it is a string or integer; null: none"
    )
    text_column: str = Field("text", description="key with the text")
    columns: dict[str, str] | None = Field(
        None, description="types of keys: string, int64, float64, bool, json, list<...>; others are looked up"
    )

    @field_validator("columns")
    @classmethod
    def _types_exist(cls, columns: dict[str, str] | None) -> dict[str, str] | None:
        for type_ in (columns or {}).values():
            declared_type(type_)
        return columns

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        objects = 0

        def seen() -> Iterator[dict[str, Any]]:
            nonlocal objects
            for value in _look(files):
                objects += 1
                yield value

        columns = columns_of(seen(), self.text_column)
        columns.update({name: declared_type(type_) for name, type_ in (self.columns or {}).items()})
        if not objects:  # nothing to judge by: no file, no readable line, or first lines beyond the look
            columns.setdefault(self.text_column, Column(pa.large_string()))
        return plan_schema(columns, Roles(self.id_column, self.text_column, self.source), "read.jsonl", extra=True)

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        if is_compressed(file.path):
            return [InputPart(file, 0, file.size_bytes, file.size_bytes * EXPECTED_RATIO)]
        bounds = [*range(0, max(file.size_bytes, 1), part_bytes), file.size_bytes]
        return [InputPart(file, start, stop, stop - start) for start, stop in pairwise(bounds)]

    def _batches(self, handle: BinaryIO, part: InputPart, rows: Rows) -> Iterator[ReadBatch]:
        offset, stop = 0, None
        if not is_compressed(part.file.path):
            offset, stop = first_line_at(handle, part.start, part.stop), part.stop
            if offset >= part.stop:
                return
        before: int | None = None  # lines before this part; counted only where an error needs it
        done = 0  # lines of this part in chunks before
        for chunk in cut_lines(open_blocks(handle, part.file.path), offset, stop):
            if chunk.error:
                before = count_newlines(handle, offset) if before is None else before
                rows.error(chunk.offset, chunk.error, chunk.data, before + done + 1)
                done += 1
                continue
            data, shift = memoryview(chunk.data), 0
            if chunk.offset == 0 and chunk.data.startswith(_BOM):
                data, shift = data[len(_BOM) :], len(_BOM)
            lines = find_lines(data)
            offsets = chunk.offset + shift + lines.starts
            if shift and len(offsets) and offsets[0] == shift:
                offsets[0] = 0  # the line starts with the mark
            decoded = _decode(data, lines, rows)
            for place, error in decoded.bad:
                before = count_newlines(handle, offset) if before is None else before
                raw = data[lines.starts[place] : lines.ends[place]]
                rows.error(int(offsets[place]), error, raw, before + done + int(lines.numbers[place]) + 1)
            yield from rows.batches(decoded.columns, offsets[decoded.lines], decoded.extra)
            done += lines.total


def _decode(data: memoryview, lines: Lines, rows: Rows) -> Decoded:
    """Decode fast what can be; where a chunk can't, only the pieces of it with the trouble go line by line."""
    pieces = list(_pieces(data, lines, 0, rows))
    if len(pieces) == 1:
        return pieces[0]
    return Decoded(
        {name: pa.concat_arrays([piece.columns[name] for piece in pieces]) for name in pieces[0].columns},
        pa.concat_arrays([piece.extra for piece in pieces]),
        np.concatenate([piece.lines for piece in pieces]),
        [bad for piece in pieces for bad in piece.bad],
    )


def _pieces(data: memoryview, lines: Lines, first: int, rows: Rows) -> Iterator[Decoded]:
    """Decoded pieces of the lines, in order; `first` is the place of the first one in the chunk."""
    count = len(lines.starts)
    low, high = (int(lines.starts[0]), int(lines.ends[-1])) if count else (0, 0)
    shifted = lines._replace(starts=lines.starts - low, ends=lines.ends - low)
    decoded = decode_fast(data[low:high], shifted, rows.layout) if count else None
    if decoded is None and (count <= 1 or high - low <= _PIECE_BYTES):
        decoded = decode_slow(data[low:high], shifted, rows.layout)
    if decoded is not None:
        yield decoded._replace(lines=decoded.lines + first, bad=[(place + first, told) for place, told in decoded.bad])
        return
    for part in np.array_split(np.arange(count), min(count, _PIECES)):
        at = slice(int(part[0]), int(part[-1]) + 1)
        piece = lines._replace(starts=lines.starts[at], ends=lines.ends[at], numbers=lines.numbers[at])
        yield from _pieces(data, piece, first + at.start, rows)


def _look(files: list[InputFile]) -> Iterator[dict[str, Any]]:
    """Objects from the beginning of every file; what can't be read here is told when it is read in earnest."""
    left = LOOK_BUDGET_BYTES
    for file in files:
        if file.mark == DANGLING:
            continue
        limit = LOOK_BYTES if left > 0 else LOOK_LEAST_BYTES
        left -= min(limit, file.size_bytes)
        with open_planned(file) as handle:
            for line in _first_lines(handle, file.path, limit):
                try:
                    yield parse_line(line)
                except BadLine:
                    continue


def _first_lines(handle: BinaryIO, path: str, limit: int) -> list[bytes]:
    """Whole lines of the first `limit` bytes, or the first line where that is longer."""
    head = bytearray()
    is_whole = True
    try:
        for block in open_blocks(handle, path):
            head += block
            if len(head) >= FIRST_LINE_BYTES or (len(head) >= limit and b"\n" in head):
                is_whole = False
                break
    except BrokenStream:
        is_whole = False
    if head.startswith(_BOM):
        del head[: len(_BOM)]
    if not is_whole or len(head) > limit:
        cut = head.rfind(b"\n", 0, limit) + 1 or head.find(b"\n") + 1
        del head[cut:]
    return [line for line in bytes(head).split(b"\n") if line.strip()]
