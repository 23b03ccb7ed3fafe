"""The four closed shapes of an operator: reader, map, call, global.

An operator is a frozen pydantic model whose fields are its parameters and whose `build()` gives the function
that works on data.  The driver and the pipeline file see plain values; a worker calls `build()` once, loads
models there, then streams tables.  The engine dispatches on these four classes and on nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

VERDICT_COLUMN = "_verdict"
VERDICT = pa.struct(
    [
        pa.field("rule", pa.string()),  # e.g. "min_words"; also the key of the funnel
        pa.field("value", pa.float64()),  # what was measured; null where it is no number
        pa.field("threshold", pa.float64()),  # the setting that decided
        pa.field("note", pa.string()),  # anything else a person wants to know ("language is de")
    ]
)
"""Type of the verdict column that a filter adds: null keeps the row, a struct drops it."""

READ_ERRORS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source_file", pa.string()),  # relative to the reader's root
        pa.field("source_offset", pa.int64()),  # bytes or rows, as in the reader's rows
        pa.field("line", pa.int64()),  # 1-based, where the format has lines
        pa.field("error", pa.string(), nullable=False),
        pa.field("raw", pa.large_binary()),  # what could not be read, cut at RAW_LIMIT_BYTES
    ]
)
"""What a reader could not turn into rows; these rows go to quarantine."""

RAW_LIMIT_BYTES = 65_536


@dataclass(frozen=True)
class Resources:
    """What one running copy of a step needs; neighbours with equal needs are fused into one stage."""

    num_cpus: float = 1.0
    num_gpus: float = 0.0


@dataclass(frozen=True)
class InputFile:
    """One file of the input manifest, as it was when the run was planned."""

    path: str  # relative to root, with forward slashes
    root: str  # absolute folder, or a dataset's URI
    size_bytes: int
    mark: str  # changes whenever the content may have changed (see readers: local files use mtime, ctime, inode)


@dataclass(frozen=True)
class InputPart:
    """A contiguous piece of one input file: [start, stop) in the reader's own unit (bytes, rows, row groups)."""

    file: InputFile
    start: int
    stop: int
    size_bytes: int  # about how much data this is, for cutting units


class ReadBatch(NamedTuple):
    """Some rows of a part, and what could not be read on the way to them."""

    rows: pa.Table  # exactly the schema the run planned
    errors: pa.Table  # READ_ERRORS
    renamed_ids: int = 0  # rows whose own key was there before, so that it got a suffix


ReadFunction = Callable[[InputPart, pa.Schema], Iterator[ReadBatch]]
MapFunction = Callable[[pa.Table], pa.Table]
CallFunction = Callable[[dict[str, Any]], AsyncIterator[dict[str, Any]]]


class Operator(BaseModel, ABC):
    """What all shapes share: frozen parameters, unknown parameters are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    resources: ClassVar[Resources] = Resources()


class Reader(Operator):
    """Input part -> tables of rows.  Every row has `id`, `source_file` and `source_offset`."""

    @abstractmethod
    def files(self) -> list[InputFile]:
        """List the inputs, sorted by path.  Raises SpecError where the root is missing or nothing matches."""

    @abstractmethod
    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        """The columns that every batch will have, from a bounded look at the files."""

    def origins(self, files: list[InputFile]) -> list[str]:
        """Where the files lie, whatever state they are in: with the parameters, this names a source."""
        return sorted({file.root for file in files})

    def place(self, file: InputFile) -> str:
        """One file's place, whatever state it is in: two runs that read the same place read the same thing."""
        return f"{file.root}/{file.path}"

    @abstractmethod
    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        """Cut one file into parts of about `part_bytes`; they tile it without gap or overlap."""

    @abstractmethod
    def build(self) -> ReadFunction:
        """The function that reads one part; it raises InputChanged where the file is not the planned one."""


class Map(Operator):
    """Table -> table, row-local, as many rows out as in, in the same order.

    A filter is a map that adds `VERDICT_COLUMN`; the engine moves the marked rows to the rejects and counts them.
    """

    @abstractmethod
    def build(self) -> MapFunction:
        """The batch function.  An empty table gives an empty table with the output's schema."""


class Call(Operator):
    """One row -> n rows through a limited model endpoint, asynchronously."""

    @abstractmethod
    def build(self) -> CallFunction:
        """The coroutine that answers one row."""


@dataclass(frozen=True)
class Selection:
    """Which rows a global step drops.

    dropped: row int64 (position in the keys table), rule string, value float64, threshold float64,
    note string, partner string (id of the row that this one lost to; null where there is none).
    """

    dropped: pa.Table
    counts: dict[str, int] = field(default_factory=dict)


SELECTION_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("value", pa.float64()),
        pa.field("threshold", pa.float64()),
        pa.field("note", pa.string()),
        pa.field("partner", pa.string()),
    ]
)


class Global(Operator):
    """Keys written row by row -> one selection over the whole dataset; the engine supplies the barrier."""

    @abstractmethod
    def build(self) -> MapFunction:
        """The key function: table -> table of key columns, one row a row, without `id`."""

    @abstractmethod
    def select(self, keys: pa.Table) -> Selection:
        """Decide over all rows.  `keys` has `id` and the key columns, in plan order; the result is the same in any."""
