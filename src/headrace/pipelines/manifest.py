"""The input manifest: which files a run reads, as they were when it was planned."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from headrace.operators.shapes import InputFile, Reader
from headrace.pipelines.digest import hash_json


@dataclass(frozen=True)
class Manifest:
    """Sorted input files.  The digest covers path, root, size and mark of each."""

    files: tuple[InputFile, ...]

    @classmethod
    def of(cls, reader: Reader) -> Manifest:
        """List the reader's files now.  Raises SpecError where there is nothing to read."""
        return cls(tuple(reader.files()))

    @property
    def digest(self) -> str:
        """What decides whether the input is the same."""
        return hash_json(self.to_plain())

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size_bytes for file in self.files)

    def to_plain(self) -> list[dict[str, Any]]:
        """As JSON values."""
        return [dataclasses.asdict(file) for file in self.files]
