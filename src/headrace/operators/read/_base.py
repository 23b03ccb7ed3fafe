"""What readers of files have in common: a root, globs, a source name, and the check of the planned files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
from pydantic import Field, field_validator

from headrace.operators.read._files import DANGLING, list_files, open_planned
from headrace.operators.read._globs import check_glob
from headrace.operators.read._rows import Rows
from headrace.operators.shapes import InputFile, InputPart, ReadBatch, Reader, ReadFunction


class FileReader(Reader):
    """A reader of files under a root."""

    root: str = Field(min_length=1, description="folder or single file; relative to the working directory")
    include: list[str] = Field(min_length=1, description="globs relative to root; `**` spans folders")
    exclude: list[str] = Field(default_factory=list, description="globs of files to leave out")
    source: str | None = Field(None, description="`source` of all rows; unset: the input's own, or root's last folder")
    allow_empty: bool = Field(False, description="whether a folder in which nothing matches is fine")

    @field_validator("include", "exclude")
    @classmethod
    def _globs_make_sense(cls, patterns: list[str]) -> list[str]:
        return [check_glob(pattern) for pattern in patterns]

    def files(self) -> list[InputFile]:
        return list_files(self.root, self.include, self.exclude, self.allow_empty)

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        return [InputPart(file, 0, file.size_bytes, file.size_bytes)]

    def build(self) -> ReadFunction:
        return self._read

    def _read(self, part: InputPart, schema: pa.Schema) -> Iterator[ReadBatch]:
        rows = Rows(part.file, schema, self.source)
        if part.file.mark == DANGLING:
            rows.error(0, "a symbolic link that points nowhere")
        else:
            with open_planned(part.file) as handle:
                yield from self._batches(handle, part, rows)
        yield from rows.rest()

    @abstractmethod
    def _batches(self, handle: BinaryIO, part: InputPart, rows: Rows) -> Iterator[ReadBatch]:
        """Read one part of an open file."""
