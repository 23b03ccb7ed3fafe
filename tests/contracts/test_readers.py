"""The laws that every reader keeps, each on an input of its own kind."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headrace.errors import DatasetNotFound, InputChanged, SpecError
from headrace.operators.resolve import names, operator_class
from headrace.operators.shapes import READ_ERRORS, Reader

TEXTS = [f"row {i} \u00e9" for i in range(30)]


class Input(NamedTuple):
    """How to make a reader's input in an empty folder, point a reader at it, and change what it planned."""

    make: Callable[[Path], None]
    fields: Callable[[Path], dict[str, Any]]
    change: Callable[[Path], None]
    is_cut: bool  # whether parts are pieces of a file, or whole files


def _files(contents: dict[str, bytes], is_cut: bool) -> Input:
    def make(folder: Path) -> None:
        for path, content in contents.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)

    def change(folder: Path) -> None:
        for path, content in contents.items():
            (folder / path).write_bytes(content + b" ")

    return Input(make, lambda folder: {"root": str(folder)}, change, is_cut)


def _parquet(texts: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [f"p{i}" for i in range(len(texts))], "text": texts}), sink, row_group_size=7)
    return bytes(sink.getvalue())


def _dataset() -> Input:
    def make(folder: Path) -> None:
        table = pa.table({"id": [f"n{i}" for i in range(len(TEXTS))], "text": pa.array(TEXTS, pa.large_string())})
        lance.write_dataset(table, str(folder / "notes.lance"), max_rows_per_file=20)

    def change(folder: Path) -> None:
        shutil.rmtree(folder / "notes.lance")
        lance.write_dataset(pa.table({"id": ["x"], "text": ["made anew"]}), str(folder / "notes.lance"))

    return Input(make, lambda folder: {"dataset": "notes", "lake": str(folder)}, change, True)


INPUTS = {
    "read.csv": _files(
        {
            "a.csv": b"text,number\n" + b"".join(b'"row %d,\nsecond line",%d\n' % (i, i) for i in range(30)),
            "b/c.csv": b"text,number\nplain,7",
        },
        is_cut=False,
    ),
    "read.jsonl": _files(
        {
            "a.jsonl": b"".join(json.dumps({"text": text}).encode() + b"\n" for text in TEXTS),
            "b/c.jsonl": b'{"text": "in a folder"}\nno json\n\n{"text": ""}',
        },
        is_cut=True,
    ),
    "read.lance": _dataset(),
    "read.parquet": _files({"a.parquet": _parquet(TEXTS), "b/c.parquet": _parquet([])}, is_cut=True),
    "read.text": _files(
        {"a.txt": "Ein Wort\r\n\u00e9".encode(), "b/empty.md": b"", "b/wrong.txt": b"\xff\xfe\xfd"},
        is_cut=False,
    ),
}
READERS = [name for name in names() if issubclass(operator_class(name), Reader)]


def _reader(name: str, folder: Path) -> Reader:
    reader = operator_class(name)(**INPUTS[name].fields(folder))
    assert isinstance(reader, Reader)
    return reader


def _read(reader: Reader, part_bytes: int) -> tuple[pa.Table, pa.Table]:
    files = reader.files()
    schema = reader.schema(files)
    read = pickle.loads(pickle.dumps(reader)).build()
    rows, errors = [schema.empty_table()], [READ_ERRORS.empty_table()]
    for file in files:
        parts = reader.parts(file, part_bytes)
        assert [part.file for part in parts] == [file] * len(parts)
        assert parts[0].start == 0
        assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]], "parts tile the file"
        assert parts[-1].stop == reader.parts(file, 1 << 40)[-1].stop
        for part in pickle.loads(pickle.dumps(parts)):
            for batch in read(part, schema):
                assert batch.rows.schema == schema
                assert batch.errors.schema == READ_ERRORS
                rows.append(batch.rows)
                errors.append(batch.errors)
    return pa.concat_tables(rows), pa.concat_tables(errors)


def test_every_reader_has_an_input_here() -> None:
    assert sorted(INPUTS) == READERS, "give a new reader its entry in INPUTS"


@pytest.mark.parametrize("name", READERS)
def test_parts_of_any_size_give_the_same_rows(name: str, tmp_path: Path) -> None:
    INPUTS[name].make(tmp_path)
    reader = _reader(name, tmp_path)
    files = [file.path for file in reader.files()]
    assert files == sorted(set(files))
    rows, errors = _read(reader, 1 << 40)
    assert rows.num_rows > 0
    assert {"id", "source_file", "source_offset"} <= set(rows.schema.names)
    assert pc.count_distinct(rows["id"]).as_py() == rows.num_rows
    assert set(rows["source_file"].to_pylist()) <= set(files)
    num_parts = 0
    for part_bytes in (1, 7, 64):
        num_parts += sum(len(reader.parts(file, part_bytes)) for file in reader.files())
        small_rows, small_errors = _read(reader, part_bytes)
        assert small_rows.equals(rows)
        assert small_errors.equals(errors)
    assert (num_parts > 3 * len(files)) == INPUTS[name].is_cut


@pytest.mark.parametrize("name", READERS)
def test_nothing_to_read_is_an_error_that_names_the_place(name: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "not_there"):
        with pytest.raises((SpecError, DatasetNotFound)):
            _reader(name, folder).files()


@pytest.mark.parametrize("name", READERS)
def test_a_changed_input_is_refused(name: str, tmp_path: Path) -> None:
    INPUTS[name].make(tmp_path)
    reader = _reader(name, tmp_path)
    files = reader.files()
    schema = reader.schema(files)
    parts = [part for file in files for part in reader.parts(file, 1 << 40)]
    INPUTS[name].change(tmp_path)
    for part in parts:
        with pytest.raises(InputChanged):
            list(reader.build()(part, schema))
