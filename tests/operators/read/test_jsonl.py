from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.errors import InputChanged, MissingDependency, SpecError
from headrace.operators.read import jsonl
from headrace.operators.read.jsonl import Jsonl
from headrace.operators.shapes import RAW_LIMIT_BYTES
from tests.operators.read.reading import Read, read_all


def _write(folder: Path, content: bytes, name: str = "a.jsonl") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder


def _lines(*values: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def _types(read: Read) -> dict[str, str]:
    return {field.name: str(field.type) for field in list(read.rows.schema)[6:]}


# ---------------------------------------------------------------------------------------------- rows and places


def test_lines_become_rows(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"text": "a", "n": 1}\r\n\r\n{"text": "\xc3\xa9", "source": "own"}\n\n{"text": "", "n": 2}'
    read = read_all(Jsonl(root=str(_write(tmp_path / "web", content))))
    assert read.errors.num_rows == 0
    assert read.rows.select(["text", "source", "source_file", "n", "extra"]).to_pylist() == [
        {"text": "a", "source": "web", "source_file": "a.jsonl", "n": 1, "extra": None},
        {"text": "é", "source": "own", "source_file": "a.jsonl", "n": None, "extra": None},
        {"text": "", "source": "web", "source_file": "a.jsonl", "n": 2, "extra": None},
    ]
    offsets = read.column("source_offset")
    assert offsets[0] == 0, "the mark belongs to the line"
    for offset, text in zip(offsets[1:], ["é", ""], strict=True):
        assert json.loads(content[offset:].split(b"\n")[0])["text"] == text


def test_empty_files_give_no_rows(tmp_path: Path) -> None:
    for name, content in {"a.jsonl": b"", "b.jsonl": b"\n \r\n", "c.jsonl.gz": b"", "d.jsonl.zst": b""}.items():
        _write(tmp_path, content, name)
    read = read_all(Jsonl(root=str(tmp_path)))
    assert (read.rows.num_rows, read.errors.num_rows) == (0, 0)
    assert read.rows.schema.names == ["id", "text", "source", "source_file", "source_offset", "extra"]


GOOD = [{"text": f"row {i} é" * (i % 7), "id": f"k{i}", "n": i, "tags": ["x"] * (i % 3)} for i in range(60)]
BAD = [b"no json", b'{"text": null}', b'{"text": "a\xff"}', b"[1]", b'{"text": ["a"]}', b'{"text": "a"} {}']
MIXED = [json.dumps(row).encode() for row in GOOD]
for _place, _bad in enumerate(BAD):
    MIXED.insert(_place * 9 + 3, _bad)
MIXED.insert(20, b"")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Jsonl, Read]:
    folder = _write(tmp_path_factory.mktemp("mixed"), b"\r\n".join(MIXED))
    reader = Jsonl(root=str(folder), source="s")
    return reader, read_all(reader, 1 << 30)


def test_every_good_line_is_a_row_and_every_bad_one_an_error(mixed: tuple[Jsonl, Read]) -> None:
    whole = mixed[1]
    assert whole.column("text") == [row["text"] for row in GOOD]
    assert whole.column("id") == [row["id"] for row in GOOD]
    told = whole.told("line", "raw")
    assert told == [(MIXED.index(bad) + 1, bad) for bad in BAD]
    offsets = [sum(len(line) + 2 for line in MIXED[: line - 1]) for line, _ in told]
    assert [offset for (offset,) in whole.told("source_offset")] == offsets


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part_bytes=st.integers(1, 4000))
def test_parts_of_any_size_give_the_whole_file(mixed: tuple[Jsonl, Read], part_bytes: int) -> None:
    reader, whole = mixed
    read = read_all(reader, part_bytes)
    assert read.rows.equals(whole.rows)
    assert read.errors.equals(whole.errors)


@pytest.mark.parametrize("part_bytes", [1, 100, 5000])
def test_coordinate_ids_do_not_depend_on_parts(tmp_path: Path, part_bytes: int) -> None:
    folder = _write(tmp_path, _lines(*({"text": "same"} for _ in range(100))))
    whole = read_all(Jsonl(root=str(folder)), 1 << 30)
    assert len(set(whole.column("id"))) == 100
    assert read_all(Jsonl(root=str(folder)), part_bytes).rows.equals(whole.rows)


def test_batches_are_bounded(tmp_path: Path) -> None:
    reader = Jsonl(root=str(_write(tmp_path, _lines(*({"text": ""} for _ in range(20_000))))))
    (file,) = reader.files()
    sizes = [batch.rows.num_rows for batch in reader.build()(reader.parts(file, 1 << 30)[0], reader.schema([file]))]
    assert sizes == [8192, 8192, 3616]


# ------------------------------------------------------------------------------------------------------ columns


def test_columns_are_looked_for_in_every_file(tmp_path: Path) -> None:
    _write(tmp_path, _lines({"text": "a", "late": None, "n": 1, "both": 1}), "a.jsonl")
    _write(tmp_path, _lines({"text": "b", "n": 2.5, "both": "x", "none": None}), "b.jsonl")
    _write(tmp_path, gzip.compress(_lines({"text": "c", "late": {"k": [1]}, "both": [1]})), "c.jsonl.gz")
    read = read_all(Jsonl(root=str(tmp_path)))
    assert _types(read) == {"late": "struct<k: list<item: int64>>", "n": "double", "both": "large_string"}
    assert read.column("n") == [1.0, 2.5, None]
    assert read.column("late") == [None, None, {"k": [1]}]
    assert read.column("both") == ["1", '"x"', "[1]"]
    assert read.column("extra") == [None] * 3
    assert read.errors.num_rows == 0


def test_keys_beyond_the_look_go_to_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LOOK_BYTES", 100)
    rows = [{"text": "a", "m": {"k": 1}}] * 5 + [
        {"text": "b", "m": {"k": 2, "new": [3]}, "id": 9, "zz": "é", "no": None}
    ]
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines(*rows)))))
    assert _types(read) == {"m": "struct<k: int64>"}
    assert read.column("m")[-1] == {"k": 2}
    assert json.loads(read.column("extra")[-1]) == {"m": {"new": [3]}, "id": 9, "zz": "é"}


def test_the_look_is_bounded_by_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_BYTES", "LOOK_BUDGET_BYTES"):
        monkeypatch.setattr(jsonl, name, 1000)
    monkeypatch.setattr(jsonl, "LOOK_LEAST_BYTES", 100)
    for name in ("a", "b"):
        _write(
            tmp_path,
            _lines(
                *({"text": "x" * 50} for _ in range(5)), {"text": "", name: 1}, *({"text": "x" * 50} for _ in range(20))
            ),
            f"{name}.jsonl",
        )
    assert "a" in Jsonl(root=str(tmp_path)).schema(Jsonl(root=str(tmp_path)).files()).names
    assert "b" not in Jsonl(root=str(tmp_path)).schema(Jsonl(root=str(tmp_path)).files()).names


def test_a_first_line_longer_than_the_look_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LOOK_BYTES", 100)
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines({"text": "x" * 1000, "n": 1}, {"text": "", "m": 1})))))
    assert _types(read) == {"n": "int64"}


def test_types_can_be_declared(tmp_path: Path) -> None:
    folder = _write(tmp_path, _lines({"text": "a", "n": 1, "m": {"k": 1}, "w": []}, {"text": "b", "n": 2}))
    read = read_all(Jsonl(root=str(folder), columns={"n": "float64", "m": "json", "w": "list<string>", "z": "bool"}))
    assert _types(read) == {"n": "double", "m": "large_string", "w": "list<item: large_string>", "z": "bool"}
    assert read.column("m") == ['{"k": 1}', None]
    with pytest.raises(ValidationError, match="is no type here"):
        Jsonl(root="x", columns={"n": "float"})


def test_columns_of_the_input_are_never_lost(tmp_path: Path) -> None:
    row = {"text": "t", "id": 1.5, "source": ["s"], "source_file": "f", "source_offset": 1, "extra": True, "a.b": 2}
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines(row)))))
    wanted = {"id_": 1.5, "source_": ["s"], "source_file_": "f", "source_offset_": 1, "extra_": True, "a_b": 2}
    assert read.rows.select(list(_types(read))).to_pylist() == [wanted]


def test_other_columns_can_be_id_and_text(tmp_path: Path) -> None:
    folder = _write(tmp_path, _lines({"id": "x", "key": 7, "body": "t"}, {"id": "y", "key": None, "body": "u"}))
    read = read_all(Jsonl(root=str(folder), id_column="key", text_column="body"))
    assert read.column("id")[0] == "7"
    assert len(read.column("id")[1]) == 32
    assert read.column("id_") == ["x", "y"]
    own = read_all(Jsonl(root=str(folder), id_column=None, text_column="body"))
    assert all(len(id_) == 32 for id_ in own.column("id"))


def test_ids_may_mix_strings_and_integers_of_any_size(tmp_path: Path) -> None:
    ids = ["a", 1, 2**64, "", None, "a"]
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines(*({"id": id_, "text": str(id_)} for id_ in ids))))))
    found = read.column("id")
    assert found[:3] == ["a", "1", str(2**64)]
    assert found[5].startswith("a~")
    assert len(set(found)) == 6


def test_no_text_anywhere_is_told_when_planned(tmp_path: Path) -> None:
    reader = Jsonl(root=str(_write(tmp_path, _lines({"content": "x", "n": 1}))))
    with pytest.raises(SpecError, match=r"read.jsonl.text_column: got 'text'; the input's columns are content, n"):
        reader.schema(reader.files())


# ------------------------------------------------------------------------------------------------- broken inputs


def test_a_value_that_its_column_does_not_hold_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LOOK_BYTES", 20)
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines(*({"text": "a", "n": n} for n in (1, "x", 2, 3.0, None)))))))
    assert read.column("n") == [1, 2, 3, None]
    assert read.told("line", "error") == [(2, 'n: a string "x", planned was int64')]


def test_what_could_not_be_read_is_kept_but_cut(tmp_path: Path) -> None:
    line = b'{"text": "' + b"x" * 200_000
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines({"text": "a"}) + line))))
    assert read.told("line", "source_offset", "raw") == [(2, 14, line[:RAW_LIMIT_BYTES])]


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl.gz", gzip.compress), ("a.jsonl.zst", zstandard.compress)])
def test_a_cut_off_file_keeps_the_rows_before_the_cut(tmp_path: Path, name: str, pack: Any) -> None:
    content = _lines(*({"text": os.urandom(300).hex(), "n": i} for i in range(5000)))
    body = pack(content)
    _write(tmp_path, body[: len(body) // 2], name)
    read = read_all(Jsonl(root=str(tmp_path)))
    assert read.rows.num_rows > 1800
    assert read.column("n") == list(range(read.rows.num_rows))
    ((file, offset, line, error),) = read.told("source_file", "source_offset", "line", "error")
    assert (file, line) == (name, read.rows.num_rows + 1)
    assert content[:offset].count(b"\n") == read.rows.num_rows
    assert f"cut off at compressed byte {len(body) // 2}" in error


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_a_file_that_is_not_what_its_ending_says_is_one_error(tmp_path: Path, name: str) -> None:
    read = read_all(Jsonl(root=str(_write(tmp_path, _lines({"text": "plain"}), name))))
    assert read.rows.num_rows == 0
    ((file, offset, error),) = read.told("source_file", "source_offset", "error")
    assert (file, offset) == (name, 0)
    assert error.startswith("not a ")


def test_members_and_frames_follow_each_other(tmp_path: Path) -> None:
    first, second = _lines({"text": "a"})[:-5], _lines({"text": "a"})[-5:] + _lines({"text": "b"})
    _write(tmp_path, gzip.compress(first) + gzip.compress(second), "a.jsonl.gz")
    _write(tmp_path, zstandard.compress(first) + zstandard.compress(second), "a.jsonl.zst")
    read = read_all(Jsonl(root=str(tmp_path)))
    assert read.column("text") == ["a", "b", "a", "b"]
    assert read.column("source_offset") == [0, 14, 0, 14]


def test_zstd_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Jsonl(root=str(_write(tmp_path, zstandard.compress(b"{}"), "a.jsonl.zst")))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingDependency):
        reader.schema(reader.files())


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_changed_file_stops_the_run(tmp_path: Path, when: str) -> None:
    content = _lines(*({"text": "x" * 1000} for _ in range(10_000)))
    reader = Jsonl(root=str(_write(tmp_path, content)))
    (file,) = reader.files()
    batches = reader.build()(reader.parts(file, 1 << 30)[0], reader.schema([file]))
    if when == "during":
        next(batches)
    times = (tmp_path / "a.jsonl").stat()
    _write(tmp_path, content.replace(b"x", b"y"))
    os.utime(tmp_path / "a.jsonl", ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(InputChanged, match=r"a\.jsonl"):
        list(batches)


def test_the_reader_is_its_parameters() -> None:
    reader = Jsonl(root="x", columns={"a": "int64"})
    assert Jsonl.model_validate(reader.model_dump()) == reader
    assert pa.types.is_large_string(reader.schema([]).field("text").type)
