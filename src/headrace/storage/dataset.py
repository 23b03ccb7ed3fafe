"""One version of a dataset as a person sees it: look, scan, take it elsewhere, ask why.

Opening resolves the reference once; what this object shows never changes afterwards.  It pickles as lake, name and
version, without credentials and without the handle.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import lance
import pyarrow as pa

from headrace.errors import HeadraceError, InternalError, MissingDependency, SpecError
from headrace.storage.channels import ChannelMove, channel_history, channels, tags
from headrace.storage.commit import RUN
from headrace.storage.foreign import first_line, storage_calls
from headrace.storage.head import transaction_properties
from headrace.storage.lake import Lake
from headrace.storage.open import open_pinned, resolve_version
from headrace.storage.reference import Reference
from headrace.storage.rows import Rows
from headrace.storage.why import Explanation, explain

if TYPE_CHECKING:
    import polars as pl

_MESSAGE = "__lance_commit_message"


@dataclass(frozen=True)
class VersionInfo:
    """One entry of a dataset's log."""

    version: int
    when: datetime  # UTC
    run: str | None  # None where no run published it (creation, maintenance)
    rows: int
    tags: tuple[str, ...]  # channels and fixed tags that point here now
    message: str | None


class Dataset:
    """A pinned version; `headrace.open(ref)` gives one."""

    def __init__(self, lake: Lake, name: str, version: int) -> None:
        """Remember what was resolved; `Dataset.open` does the resolving."""
        self.lake, self.name, self.version = lake, name, version

    @classmethod
    def open(cls, ref: Reference | str, lake: Lake | str | None = None) -> Dataset:
        """The version that the reference means now; DatasetNotFound says what there is instead."""
        ref = Reference.parse(ref) if isinstance(ref, str) else ref
        lake = lake if isinstance(lake, Lake) else Lake.resolve(lake)
        return cls(lake, ref.name, resolve_version(lake, ref))

    def __reduce__(self) -> tuple[type[Dataset], tuple[Lake, str, int]]:
        """Leave the handle out of pickles: it holds credentials."""
        return type(self), (self.lake, self.name, self.version)

    @cached_property
    def handle(self) -> lance.LanceDataset:
        """Lance's own dataset, for what this view does not offer; do not commit through it."""
        return open_pinned(self.lake, self.name, self.version)

    @property
    def uri(self) -> str:
        """Where the dataset lies."""
        return self.lake.dataset_uri(self.name)

    @property
    def schema(self) -> pa.Schema:
        """Columns and types."""
        return self.handle.schema

    @property
    def num_rows(self) -> int:
        """Rows of this version, from the manifest."""
        with storage_calls(self.uri):
            return int(self.handle.count_rows())

    def head(self, n: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """The first rows, in the dataset's order."""
        with self._query(columns, None):
            return self.handle.to_table(columns=_listed(columns), limit=n)

    def show(self, n: int = 10, columns: Sequence[str] | None = None) -> Rows:
        """The first rows, for the eye."""
        return Rows(self.head(n, columns))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        batch_size: int = 1024,
    ) -> Iterator[pa.RecordBatch]:
        """Batches in the dataset's order; `filter` is SQL over the columns, `batch_size` is in rows."""
        with self._query(columns, filter):
            scanner = self.handle.scanner(columns=_listed(columns), filter=filter, batch_size=batch_size)
            scanner.explain_plan()  # a wrong filter is told here, not at the first batch
        return self._batches(scanner)

    def to_arrow(self, columns: Sequence[str] | None = None, filter: str | None = None) -> pa.Table:
        """All rows in memory."""
        with self._query(columns, filter):
            return self.handle.to_table(columns=_listed(columns), filter=filter)

    def to_polars(self, columns: Sequence[str] | None = None, filter: str | None = None) -> pl.DataFrame:
        """All rows as a polars frame; needs the extra `pipelines`."""
        try:
            import polars as pl
        except ImportError as error:
            fix = "pip install 'headrace[pipelines]'"
            raise MissingDependency("to_polars", "", "polars is not installed", fix) from error
        frame = pl.from_arrow(self.to_arrow(columns, filter))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def log(self, limit: int | None = None) -> list[VersionInfo]:
        """The dataset's history up to this version, newest first."""
        pointing: dict[int, list[str]] = {}
        for tag, version in self.tags().items():
            pointing.setdefault(version, []).append(tag)
        with storage_calls(self.uri):
            found = [version for version in self.handle.versions() if version["version"] <= self.version]
        infos = []
        for entry in sorted(found, key=lambda entry: -int(entry["version"]))[:limit]:
            number = int(entry["version"])
            properties = transaction_properties(self.handle, number)
            when = entry["timestamp"].astimezone(UTC)  # Lance tells naive local time
            rows = int(entry["metadata"].get("total_rows", 0))
            told = tuple(sorted(pointing.get(number, [])))
            infos.append(VersionInfo(number, when, properties.get(RUN), rows, told, properties.get(_MESSAGE)))
        return infos

    def tags(self) -> dict[str, int]:
        """Channels and fixed tags of the dataset as they point now, by name."""
        return dict(sorted({**tags(self.lake, self.name), **channels(self.lake, self.name)}.items()))

    def moves(self) -> dict[str, list[ChannelMove]]:
        """Every move of every channel of the dataset, newest first, by channel."""
        return {name: channel_history(self.lake, self.name, name)[::-1] for name in channels(self.lake, self.name)}

    def why(self, id: str) -> Explanation:
        """What happened to this row on its way to this version."""
        return explain(self.lake, self.name, self.version, id)

    def __repr__(self) -> str:
        """Name, version and lake."""
        return f"Dataset({self.name}@{self.version}, {self.num_rows} rows, lake {self.lake.uri})"

    def _repr_html_(self) -> str:
        columns = ", ".join(f"{escape(field.name)} <i>{escape(str(field.type))}</i>" for field in self.schema)
        title = f"<b>{escape(self.name)}@{self.version}</b>, {self.num_rows:,} rows"
        return f"<p>{title}<br>{columns}</p>{self.show(5)._repr_html_()}"

    def _batches(self, scanner: lance.LanceScanner) -> Iterator[pa.RecordBatch]:
        with storage_calls(self.uri):
            yield from scanner.to_batches()

    @contextmanager
    def _query(self, columns: Sequence[str] | None, filter: str | None) -> Iterator[None]:
        """Tell a wrong column or filter in terms of this dataset."""
        names = self.schema.names
        for column in columns or ():
            if column not in names and not column.startswith("_row"):
                near = difflib.get_close_matches(column, names, n=1) or names
                raise SpecError(
                    f"dataset {self.name}", f"column {column!r}", "no such column", f"try {', '.join(near)}"
                )
        try:
            with storage_calls(self.uri):
                yield
        except HeadraceError:
            raise
        except ValueError as error:
            if filter is None:
                raise InternalError(f"dataset {self.name}", first_line(error), "Lance refused a plain read") from error
            rule = f"the filter is SQL over the columns {', '.join(names)}"
            raise SpecError(f"dataset {self.name}", repr(filter), rule, first_line(error)) from error


def _listed(columns: Sequence[str] | None) -> list[str] | None:
    return None if columns is None else list(columns)
