"""See `Parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as arrow_parquet
from pydantic import Field

from headrace.operators.read._base import FileReader
from headrace.operators.read._files import DANGLING, full_path, open_planned
from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._rows import BATCH_BYTES, BATCH_ROWS, Rows
from headrace.operators.read._tabular import fit, settle, unify
from headrace.operators.shapes import InputFile, InputPart, ReadBatch


class Parquet(FileReader):
    """Each row stays one row; columns keep their types, with 64-bit strings.

    All footers are read when a run is planned: a column that one file lacks is null there, integers and floats are
    widened, anything else in conflict stops the plan.  A row without text is an error row; so is the rest of a row
    group that can't be decoded, and a whole file whose footer can't be read.

    Columns
        reads    Parquet files, nested columns too; dictionaries are decoded
        writes   id, text: large_string, source, source_file, source_offset (row in the file), and all other columns
        rows     1 row -> 1 row or 1 error
    Cost: CPU, O(bytes); memory of one row group's compressed columns and one batch.
    Raises: SpecError if root is missing, nothing matches, or a named column is no use; DataError if files conflict;
        InputChanged if a file is not the planned one.
    Source: ours.

    >>> import pathlib, tempfile
    >>> import pyarrow.parquet
    >>> root = tempfile.TemporaryDirectory()
    >>> table = pa.table({"key": [7], "content": ["Weir"], "lang": ["en"]})
    >>> pyarrow.parquet.write_table(table, pathlib.Path(root.name, "a.parquet"))
    >>> reader = Parquet(root=root.name, id_column="key", text_column="content")
    >>> part = reader.parts(reader.files()[0], 1 << 20)[0]
    >>> rows, errors, _ = next(reader.build()(part, reader.schema([part.file])))
    >>> rows.select(["id", "text", "lang"]).to_pylist()
    [{'id': '7', 'text': 'Weir', 'lang': 'en'}]
    >>> root.cleanup()
    """

    include: list[str] = Field(
        default_factory=lambda: ["**/*.parquet"], min_length=1, description="globs relative to root"
    )
    id_column: str | None = Field(
        "auto", description="column with the row's own id; auto: `id` where it is a string or integer; null: none"
    )
    text_column: str = Field("text", description="column with the text")

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        columns: dict[str, Column] = {}
        for file in files:
            footer = _footer(file)
            if footer is not None:
                unify(columns, footer.schema.to_arrow_schema(), full_path(file))
        if not columns:  # no file, or none that can be read
            columns[self.text_column] = Column(pa.large_string())
        return plan_schema(settle(columns), Roles(self.id_column, self.text_column, self.source), "read.parquet")

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        footer = _footer(file)
        if footer is None or footer.num_row_groups == 0:
            return [InputPart(file, 0, 0, file.size_bytes)]
        parts, start, held = [], 0, 0
        for group in range(footer.num_row_groups):
            size = footer.row_group(group).total_byte_size
            if group > start and held + size > part_bytes:
                parts.append(InputPart(file, start, group, held))
                start, held = group, 0
            held += size
        return [*parts, InputPart(file, start, footer.num_row_groups, held)]

    def _batches(self, handle: BinaryIO, part: InputPart, rows: Rows) -> Iterator[ReadBatch]:
        try:
            file = arrow_parquet.ParquetFile(handle)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            _raise_if_io(error)
            rows.error(0, f"the footer can't be read: {_told(error)}")
            return
        groups = [file.metadata.row_group(group) for group in range(part.stop)]
        row = sum(group.num_rows for group in groups[: part.start])
        for number in range(part.start, part.stop):
            yield from _group(file, number, row, rows)
            row += groups[number].num_rows


def _group(file: arrow_parquet.ParquetFile, number: int, row: int, rows: Rows) -> Iterator[ReadBatch]:
    group = file.metadata.row_group(number)
    size = BATCH_BYTES * max(group.num_rows, 1) // max(group.total_byte_size, 1)
    batches = file.iter_batches(min(max(size, 1), BATCH_ROWS), row_groups=[number], use_threads=False)
    at = row
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            _raise_if_io(error)
            told = f"rows {at} to {row + group.num_rows - 1} (row group {number}) can't be decoded: {_told(error)}"
            rows.error(at, told)
            return
        if batch is None:
            return
        fitted = fit(pa.Table.from_batches([batch]), rows.layout)
        for place, error_text in fitted.bad:
            rows.error(at + place, error_text)
        yield from rows.batches(fitted.columns, fitted.rows + at)
        at += batch.num_rows


def _footer(file: InputFile) -> arrow_parquet.FileMetaData | None:
    """The file's footer; None where it can't be read, which is told when the file is read."""
    if file.mark == DANGLING:
        return None
    with open_planned(file) as handle:
        try:
            footer = arrow_parquet.read_metadata(handle)
            footer.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            _raise_if_io(error)
            return None
        return footer


def _raise_if_io(error: Exception) -> None:
    """Arrow tells of damage by OSError too, then without a number."""
    if isinstance(error, OSError) and error.errno is not None:
        raise error


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:500]
