"""See `Text`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from headrace.operators.read._base import FileReader
from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._rows import Rows
from headrace.operators.read._streams import BrokenStream, open_blocks
from headrace.operators.shapes import RAW_LIMIT_BYTES, InputFile, InputPart, ReadBatch

LIMIT_BYTES = 1 << 30
_BOM = b"\xef\xbb\xbf"


class Text(FileReader):
    """Each file becomes one row: its whole content is the text.

    Files are UTF-8; a byte order mark is left out, NUL bytes stay.  Names ending in .gz or .zst are decompressed.  A
    file of more than 1 GiB is an error row, since a row must fit in memory.

    Columns
        reads    files under `root`
        writes   id, text: large_string, source, source_file, source_offset: 0
        rows     1 file -> 1 row; an empty file gives an empty text
    Cost: CPU, O(bytes), memory about 3 times the largest file; small files are bound by opening them.
    Raises: SpecError if root is missing or nothing matches; InputChanged if a file is not the planned one.
    Source: ours.

    >>> import pathlib, tempfile
    >>> root = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(root.name, "a.md").write_text("# Weir")
    >>> reader = Text(root=root.name, source="notes")
    >>> part = reader.parts(reader.files()[0], 1 << 20)[0]
    >>> rows, errors, _ = next(reader.build()(part, reader.schema([part.file])))
    >>> rows.select(["text", "source", "source_file"]).to_pylist()
    [{'text': '# Weir', 'source': 'notes', 'source_file': 'a.md'}]
    >>> root.cleanup()
    """

    include: list[str] = Field(
        default_factory=lambda: ["**/*.txt", "**/*.md"], min_length=1, description="globs relative to root"
    )
    errors: Literal["quarantine", "replace"] = Field(
        "quarantine", description="what bytes that are no UTF-8 do: the file is an error row, or they become U+FFFD"
    )

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        return plan_schema({"text": Column(pa.large_string())}, Roles(None, "text", self.source), "read.text")

    def _batches(self, handle: BinaryIO, part: InputPart, rows: Rows) -> Iterator[ReadBatch]:
        content = bytearray()
        try:
            for block in open_blocks(handle, part.file.path):
                content += block
                if len(content) > LIMIT_BYTES:
                    rows.error(0, f"the file holds more than {LIMIT_BYTES} bytes", content)
                    return
        except BrokenStream as error:
            rows.error(0, str(error), content)
            return
        view = memoryview(content)[len(_BOM) if content.startswith(_BOM) else 0 :]
        texts = pa.Array.from_buffers(
            pa.large_string(), 1, [None, pa.py_buffer(np.array([0, len(view)], np.int64)), pa.py_buffer(view)]
        )
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            if self.errors == "quarantine":
                at = _first_bad_byte(content)
                rows.error(0, f"not UTF-8 at byte {at}", content if at < RAW_LIMIT_BYTES else content[at:])
                return
            texts = pa.array([content.decode("utf-8-sig", "replace")], pa.large_string())
        yield from rows.batches({"text": texts}, np.zeros(1, np.int64))


def _first_bad_byte(content: bytearray) -> int:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(content)
