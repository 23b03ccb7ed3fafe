"""See `Lance`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import lance
import pyarrow as pa
from pydantic import Field, field_validator
from xxhash import xxh3_128_hexdigest

from headrace.errors import InputChanged, SpecError
from headrace.operators.read._layout import Column, Roles, plan_schema
from headrace.operators.read._rows import BATCH_BYTES, BATCH_ROWS, Rows
from headrace.operators.read._tabular import fit, settle, unify
from headrace.operators.shapes import InputFile, InputPart, ReadBatch, Reader, ReadFunction
from headrace.storage.foreign import storage_calls
from headrace.storage.lake import Lake
from headrace.storage.open import open_pinned, open_version
from headrace.storage.reference import Reference

_AT = "@"  # in InputFile.root: the dataset's URI, then the pinned version


class Lance(Reader):
    """Each row of a dataset of the lake stays one row, with its id and with where it came from at first.

    The reference is resolved when a run is planned; a channel that moves later changes nothing.  One fragment is one
    input file, deleted rows are left out.  A row without text is an error row, unless `text_column` is null.

    Columns
        reads    a dataset's version
        writes   id, text: large_string, source, source_file, source_offset (the dataset's own where it has them, else
                 fragment and row), and all other columns
        rows     1 row -> 1 row or 1 error
    Cost: CPU and storage, O(bytes); memory of a few batches.
    Raises: DatasetNotFound if there is no such dataset or version; SpecError if a named column is no use, or the
        dataset is empty and that is not allowed; InputChanged if the version is not the planned one.
    Source: ours.

    >>> import tempfile
    >>> root = tempfile.TemporaryDirectory()
    >>> _ = lance.write_dataset(pa.table({"id": ["a"], "text": ["Weir"]}), f"{root.name}/notes.lance")
    >>> reader = Lance(dataset="notes", lake=root.name)
    >>> part = reader.parts(reader.files()[0], 1 << 20)[0]
    >>> rows, errors, _ = next(reader.build()(part, reader.schema([part.file])))
    >>> rows.select(["id", "text", "source", "source_file"]).to_pylist()
    [{'id': 'a', 'text': 'Weir', 'source': 'notes', 'source_file': 'notes/000000'}]
    >>> root.cleanup()
    """

    dataset: str = Field(description="reference: name, name@version, name@channel or name@tag")
    lake: str | None = Field(None, description="root of the lake; unset: HEADRACE_LAKE, else ./lake")
    source: str | None = Field(None, description="`source` of all rows; unset: the dataset's own, or its name")
    allow_empty: bool = Field(False, description="whether a dataset without rows is fine")
    id_column: str | None = Field("auto", description="column with the row's own id; auto: `id`; null: none")
    text_column: str | None = Field("text", description="column with the text; null: rows have none")

    @field_validator("dataset")
    @classmethod
    def _is_reference(cls, dataset: str) -> str:
        Reference.parse(dataset)
        return dataset

    def files(self) -> list[InputFile]:
        reference = Reference.parse(self.dataset)
        lake = Lake.resolve(self.lake)
        uri = lake.dataset_uri(reference.name)
        with storage_calls(uri):
            dataset = open_version(lake, reference)
            root = f"{uri}{_AT}{dataset.version}"
            found = [
                InputFile(f"{reference.name}/{fragment.fragment_id:06d}", root, _size_bytes(fragment), _mark(fragment))
                for fragment in dataset.get_fragments()
            ]
        if not found and not self.allow_empty:
            place = f"{reference.name}{_AT}{dataset.version}"
            raise SpecError(place, "no rows", "there must be something to read", "set allow_empty: true")
        return sorted(found, key=lambda file: file.path)

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        if files:
            found = _open(files[0]).schema
        else:
            found = open_version(Lake.resolve(self.lake), Reference.parse(self.dataset)).schema
        columns: dict[str, Column] = {}
        unify(columns, found, self.dataset)
        roles = Roles(self.id_column, self.text_column, self.source, origin=True)
        return plan_schema(settle(columns), roles, "read.lance")

    def origins(self, files: list[InputFile]) -> list[str]:
        return sorted({self.place(file) for file in files})

    def place(self, file: InputFile) -> str:
        return file.root.rpartition(_AT)[0]

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        with storage_calls(file.root):
            count = _fragment(file).count_rows()
        step = max(1, count * part_bytes // max(file.size_bytes, 1))
        size = file.size_bytes / max(count, 1)
        bounds = [(start, min(start + step, count)) for start in range(0, max(count, 1), step)]
        return [InputPart(file, start, stop, round((stop - start) * size)) for start, stop in bounds]

    def build(self) -> ReadFunction:
        return self._read

    def _read(self, part: InputPart, schema: pa.Schema) -> Iterator[ReadBatch]:
        name = Reference.parse(self.dataset).name
        rows = Rows(part.file, schema, self.source if self.source is not None else name)
        if part.stop == part.start:
            return
        with storage_calls(part.file.root):
            scanner = _fragment(part.file).scanner(
                offset=part.start,
                limit=part.stop - part.start,
                batch_size=_batch_rows(part),
                blob_handling="all_binary",
            )
            at = part.start
            for batch in scanner.to_batches():
                fitted = fit(pa.Table.from_batches([batch]), rows.layout)
                for place, error in fitted.bad:
                    rows.error(at + place, error)
                yield from rows.batches(fitted.columns, fitted.rows + at)
                at += batch.num_rows


def _batch_rows(part: InputPart) -> int:
    return int(min(max(BATCH_BYTES * (part.stop - part.start) // max(part.size_bytes, 1), 1), BATCH_ROWS))


def _open(file: InputFile) -> lance.LanceDataset:
    """The dataset of a planned fragment, at the planned version, whatever lake this process would find by itself."""
    uri, _, version = file.root.rpartition(_AT)
    name, _, _ = file.path.rpartition("/")
    return open_pinned(Lake(uri.removesuffix(f"/{name}.lance")), name, int(version))


def _fragment(file: InputFile) -> lance.LanceFragment:
    """The planned fragment.  Raises InputChanged where the version has another one in its place."""
    fragment = _open(file).get_fragment(int(file.path.rpartition("/")[2]))
    found = "no fragment" if fragment is None else _mark(fragment)
    if found != file.mark:
        fix = "the dataset was made anew; start the run again, so that it plans what is there now"
        raise InputChanged(f"{file.root}, {file.path}", found, f"the run was planned with {file.mark}", fix)
    return fragment


def _mark(fragment: lance.LanceFragment) -> str:
    """Files and deletions of a fragment: the same in every version that did not touch it."""
    return str(xxh3_128_hexdigest(json.dumps(fragment.metadata.to_json(), sort_keys=True).encode()))


def _size_bytes(fragment: lance.LanceFragment) -> int:
    sizes = [file.file_size_bytes for file in fragment.metadata.files]
    return sum(size or 0 for size in sizes) or fragment.count_rows() * 1024
