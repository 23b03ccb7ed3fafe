"""See `Csv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from headrace.operators.read._base import FileReader
from headrace.operators.read._csv_records import Record, read_records
from headrace.operators.read._files import DANGLING, full_path, open_planned
from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._rows import BATCH_BYTES, BATCH_ROWS, Rows
from headrace.operators.read._streams import EXPECTED_RATIO, is_compressed, open_blocks
from headrace.operators.read._tabular import fit, unify
from headrace.operators.read._types import declared_type
from headrace.operators.shapes import InputFile, InputPart, ReadBatch


class Csv(FileReader):
    r"""Each record becomes one row; the first one of a file names the columns.

    Quoted fields may hold line ends, and a quote within them is doubled.  All columns are strings unless `types` says
    otherwise.  A record with another number of fields than the header, or a field that its type does not hold, is an
    error row; after a broken quote, reading goes on with the next line.

    Columns
        reads    records of UTF-8 with a header; plain, .gz or .zst
        writes   id, text: large_string, source, source_file, source_offset (byte in the decompressed file), and all
                 other columns; an empty field is an empty string, and null where a type is declared
        rows     1 record -> 1 row or 1 error
    Cost: CPU, O(bytes), one file is one part; see README.md in this folder for MB/s.
    Raises: SpecError if root is missing, nothing matches, or a named column is no use; DataError if a header names a
        column twice; InputChanged if a file is not the planned one.
    Source: ours; quoting as in RFC 4180.

    >>> import pathlib, tempfile
    >>> root = tempfile.TemporaryDirectory()
    >>> _ = pathlib.Path(root.name, "a.csv").write_text('text,year\n"Weir, old",1894\n')
    >>> reader = Csv(root=root.name, types={"year": "int64"})
    >>> part = reader.parts(reader.files()[0], 1 << 20)[0]
    >>> rows, errors, _ = next(reader.build()(part, reader.schema([part.file])))
    >>> rows.select(["text", "year"]).to_pylist()
    [{'text': 'Weir, old', 'year': 1894}]
    >>> root.cleanup()
    """

    include: list[str] = Field(
        default_factory=lambda: ["**/*.csv", "**/*.csv.gz", "**/*.csv.zst"],
        min_length=1,
        description="globs relative to root",
    )
    delimiter: str = Field(",", min_length=1, max_length=1, description="what separates fields; a tab for TSV")
    id_column: str | None = Field("auto", description="column with the row's own id; auto: `id`; null: none")
    text_column: str = Field("text", description="column with the text")
    types: dict[str, str] = Field(
        default_factory=dict, description="types of columns: string, int64, float64, bool; others are strings"
    )

    @field_validator("delimiter")
    @classmethod
    def _delimiter_separates(cls, delimiter: str) -> str:
        if delimiter in '"\r\n' or not delimiter.isascii():
            raise ValueError(f"{delimiter!r} can't separate fields")
        return delimiter

    @field_validator("types")
    @classmethod
    def _types_exist(cls, types: dict[str, str]) -> dict[str, str]:
        for type_ in types.values():
            column = declared_type(type_)
            if column.form or pa.types.is_nested(column.type):
                raise ValueError(f"{type_!r} is no type of a CSV field; there are string, int64, float64, bool")
        return types

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        columns: dict[str, Column] = {}
        for file in files:
            if file.mark == DANGLING:
                continue
            with open_planned(file) as handle:
                header = next(read_records(open_blocks(handle, file.path), self.delimiter), None)
            if header is not None and not header.error:
                named = pa.schema([(name, self._type(name)) for name in header.fields])
                unify(columns, named, full_path(file))
        if not columns:  # no file, or none with a header
            columns[self.text_column] = Column(pa.large_string())
        return plan_schema(columns, Roles(self.id_column, self.text_column, self.source), "read.csv")

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        size = file.size_bytes * (EXPECTED_RATIO if is_compressed(file.path) else 1)
        return [InputPart(file, 0, file.size_bytes, size)]

    def _type(self, column: str) -> pa.DataType:
        return declared_type(self.types.get(column, "string")).type

    def _batches(self, handle: BinaryIO, part: InputPart, rows: Rows) -> Iterator[ReadBatch]:
        records = read_records(open_blocks(handle, part.file.path), self.delimiter)
        header = next(records, None)
        if header is None:
            return
        if header.error:
            rows.error(header.offset, f"the header can't be read: {header.error}", header.raw, header.line)
            return
        waiting: list[Record] = []
        size = 0
        for record in records:
            if record.error:
                rows.error(record.offset, record.error, record.raw, record.line)
                continue
            waiting.append(record)
            size += sum(map(len, record.fields))
            if len(waiting) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield from self._flush(waiting, header.fields, rows)
                waiting, size = [], 0
        yield from self._flush(waiting, header.fields, rows)

    def _flush(self, records: list[Record], names: list[str], rows: Rows) -> Iterator[ReadBatch]:
        if not records:
            return
        arrays = []
        for name, values in zip(names, zip(*(record.fields for record in records), strict=True), strict=True):
            array = pa.array(values, pa.large_string())
            if self.types.get(name, "string") != "string":
                array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.large_string()), array)
            arrays.append(array)
        fitted = fit(pa.table(arrays, names=names), rows.layout)
        for place, error in fitted.bad:
            record = records[place]
            rows.error(record.offset, error, self.delimiter.join(record.fields).encode(), record.line)
        offsets = np.array([record.offset for record in records], np.int64)
        yield from rows.batches(fitted.columns, offsets[fitted.rows])
