from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from pydantic import ValidationError

from headrace.errors import DataError, InputChanged, SpecError
from headrace.operators.read.csv import Csv
from tests.operators.read.reading import read_all


def _write(folder: Path, content: bytes, name: str = "a.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def test_records_become_rows_of_strings(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfid,text,n,source\r\nk,"a ""b"",\nc",007,own\r\n,\xc3\xa9,,\n'
    read = read_all(Csv(root=str(_write(tmp_path / "books", content))))
    first, second = read.rows.to_pylist()
    assert first == {
        "id": "k",
        "text": 'a "b",\nc',
        "source": "own",
        "source_file": "a.csv",
        "source_offset": 21,
        "n": "007",
    }
    assert len(second["id"]) == 32
    assert (second["text"], second["n"], second["source"]) == ("é", "", "")
    assert read.errors.num_rows == 0


def test_bad_records_are_errors_with_their_lines(tmp_path: Path) -> None:
    content = b'text,n\n"a\nb",1\nshort\nc,2,3\nd,x\n"e"f,1\n\xff,1\n"open,1\ng,5\n'
    read = read_all(Csv(root=str(_write(tmp_path, content)), types={"n": "int64"}))
    assert read.rows.select(["text", "n"]).to_pylist() == [{"text": "a\nb", "n": 1}, {"text": "g", "n": 5}]
    told = sorted(read.told("line", "source_offset", "raw"))
    assert told == [
        (4, 15, b"short\n"),
        (5, 21, b"c,2,3\n"),
        (6, 27, b"d,x"),
        (7, 31, b'"e"f,1\n'),
        (8, 38, b"\xff,1\n"),
        (9, 42, b'"open,1\n'),
    ]


def test_types_can_be_declared_and_empty_fields_are_null_then(tmp_path: Path) -> None:
    types = {"i": "int64", "f": "float64", "b": "bool", "s": "string"}
    read = read_all(Csv(root=str(_write(tmp_path, b"text,i,f,b,s\nx,1,2.5,true,\n,,,,\n")), types=types))
    assert read.rows.select(["text", *types]).to_pylist() == [
        {"text": "x", "i": 1, "f": 2.5, "b": True, "s": ""},
        {"text": "", "i": None, "f": None, "b": None, "s": ""},
    ]


@pytest.mark.parametrize(
    "fields", [{"types": {"a": "json"}}, {"types": {"a": "list<string>"}}, {"delimiter": ",,"}, {"delimiter": '"'}]
)
def test_parameters_are_checked(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Csv.model_validate({"root": "x", **fields})


def test_files_are_unified_by_the_names_of_their_columns(tmp_path: Path) -> None:
    _write(tmp_path, b"text,a\nx,1\n")
    _write(tmp_path, b"b,text\n2,y\n", "b.csv")
    _write(tmp_path, b"", "c.csv")
    _write(tmp_path, b"text,a,b\n", "d.csv")
    read = read_all(Csv(root=str(tmp_path)))
    assert read.rows.select(["text", "a", "b"]).to_pylist() == [
        {"text": "x", "a": "1", "b": None},
        {"text": "y", "a": None, "b": "2"},
    ]


def test_a_header_is_needed(tmp_path: Path) -> None:
    reader = Csv(root=str(_write(tmp_path, b"some text,more\nx,1\n")))
    with pytest.raises(SpecError, match="columns are more, some text"):
        reader.schema(reader.files())
    _write(tmp_path, b"text,a,a\nx,1,2\n")
    with pytest.raises(DataError, match=r"a\.csv: got two columns 'a'"):
        reader.schema(reader.files())
    _write(tmp_path, b"\xff\nx\ny\n")
    read = read_all(reader)
    assert read.rows.num_rows == 0
    ((line, error),) = read.told("line", "error")
    assert line == 1
    assert error.startswith("the header can't be read: not UTF-8")


def test_columns_without_a_name_or_with_ours_are_kept(tmp_path: Path) -> None:
    read = read_all(Csv(root=str(_write(tmp_path, b",text,source_file\n0,x,f\n"))))
    assert read.rows.schema.names[5:] == ["_", "source_file_"]
    assert (read.column("_"), read.column("source_file_")) == (["0"], ["f"])


def test_compressed_and_tab_separated_files_are_read(tmp_path: Path) -> None:
    content = b"text\tn\na,b\t1\n"
    _write(tmp_path, gzip.compress(content), "a.tsv.gz")
    _write(tmp_path, zstandard.compress(content), "b.tsv.zst")
    cut = gzip.compress(content + b"".join(b"row %d\t%d\n" % (i, i * i) for i in range(20_000)))
    _write(tmp_path, cut[: len(cut) // 2], "c.tsv.gz")
    read = read_all(Csv(root=str(tmp_path), include=["*.tsv*"], delimiter="\t"))
    assert read.column("text")[:3] == ["a,b"] * 3
    assert read.rows.num_rows > 5000
    ((file, line, error),) = read.told("source_file", "line", "error")
    assert (file, line) == ("c.tsv.gz", read.rows.num_rows)
    assert "cut off" in error


def test_batches_are_bounded_and_do_not_show(tmp_path: Path) -> None:
    folder = _write(tmp_path, b"text\n" + b"".join(b"row %d\n" % i for i in range(20_000)))
    reader = Csv(root=str(folder))
    read = read_all(reader)
    assert read.column("text") == [f"row {i}" for i in range(20_000)]
    assert len(set(read.column("id"))) == 20_000
    (file,) = reader.files()
    (part,) = reader.parts(file, 1)
    assert len(list(reader.build()(part, reader.schema([file])))) == 3


def test_a_changed_file_stops_the_run(tmp_path: Path) -> None:
    reader = Csv(root=str(_write(tmp_path, b"text\na\n")))
    (file,) = reader.files()
    schema = reader.schema([file])
    _write(tmp_path, b"text\nb\n")
    with pytest.raises(InputChanged, match=r"a\.csv"):
        list(reader.build()(reader.parts(file, 1)[0], schema))
