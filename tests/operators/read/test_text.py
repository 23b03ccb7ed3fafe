from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pydantic import ValidationError

from headrace.errors import InputChanged, SpecError
from headrace.operators.read import text
from headrace.operators.read.text import Text
from tests.operators.read.reading import read_all


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "a.md": b"# Weir\r\n",
        "b/bom.txt": b"\xef\xbb\xbf\xc3\xa9\0",
        "b/empty.txt": b"",
        "b/wrong.txt": b"good \xff\xfe",
        "c.rst": b"not asked for",
    }
    for name, content in files.items():
        (tmp_path / "books" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "books" / name).write_bytes(content)
    return tmp_path / "books"


def test_each_file_is_a_row(root: Path) -> None:
    read = read_all(Text(root=str(root)))
    assert read.rows.drop_columns("id").to_pylist() == [
        {"text": "# Weir\r\n", "source": "books", "source_file": "a.md", "source_offset": 0},
        {"text": "é\0", "source": "books", "source_file": "b/bom.txt", "source_offset": 0},
        {"text": "", "source": "books", "source_file": "b/empty.txt", "source_offset": 0},
    ]
    assert len(set(read.column("id"))) == 3
    assert read.told("source_file", "source_offset", "line", "error", "raw") == [
        ("b/wrong.txt", 0, None, "not UTF-8 at byte 5", b"good \xff\xfe")
    ]


def test_wrong_bytes_can_be_replaced(root: Path) -> None:
    read = read_all(Text(root=str(root), errors="replace", include=["b/*"]))
    assert read.column("text") == ["é\0", "", "good \ufffd\ufffd"]
    assert read.errors.num_rows == 0


def test_a_late_wrong_byte_is_shown(root: Path) -> None:
    (root / "a.md").write_bytes(b"x" * 100_000 + b"\xff!")
    assert read_all(Text(root=str(root), include=["*.md"])).told("error", "raw") == [
        ("not UTF-8 at byte 100000", b"\xff!")
    ]


def test_compressed_files_are_read(root: Path) -> None:
    (root / "d.txt.gz").write_bytes(gzip.compress(b"squeezed"))
    (root / "e.txt.gz").write_bytes(gzip.compress(b"squeezed" * 1000)[:30])
    (root / "f.txt.gz").write_bytes(b"plain")
    read = read_all(Text(root=str(root), include=["*.gz"]))
    assert read.column("text") == ["squeezed"]
    assert [file for (file,) in read.told("source_file")] == ["e.txt.gz", "f.txt.gz"]


def test_a_file_that_fits_no_memory_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "LIMIT_BYTES", 5)
    assert read_all(Text(root=str(root))).told("source_file", "error")[0] == (
        "a.md",
        "the file holds more than 5 bytes",
    )


def test_a_link_that_points_nowhere_is_an_error_row(root: Path) -> None:
    (root / "lost.md").symlink_to(root / "gone.md")
    read = read_all(Text(root=str(root), include=["*.md"]))
    assert read.told("source_file", "error") == [("lost.md", "a symbolic link that points nowhere")]
    assert read.column("source_file") == ["a.md"]


def test_a_given_source_counts_and_an_empty_folder_may_be_fine(root: Path) -> None:
    assert set(read_all(Text(root=str(root), source="mine")).column("source")) == {"mine"}
    assert read_all(Text(root=str(root), include=["*.nope"], allow_empty=True)).rows.num_rows == 0
    with pytest.raises(SpecError, match="nothing under"):
        Text(root=str(root), include=["*.nope"]).files()


def test_ids_depend_on_the_content(root: Path) -> None:
    before = read_all(Text(root=str(root), include=["*.md"])).column("id")
    assert read_all(Text(root=str(root / "a.md"))).column("id") == before, "and not on the root"
    (root / "a.md").write_bytes(b"# Weirs\r\n")
    assert read_all(Text(root=str(root), include=["*.md"])).column("id") != before


def test_a_changed_file_stops_the_run(root: Path) -> None:
    reader = Text(root=str(root))
    file = reader.files()[0]
    (root / "a.md").write_bytes(b"# Dam_\r\n")
    with pytest.raises(InputChanged, match=r"a\.md"):
        list(reader.build()(reader.parts(file, 1)[0], reader.schema([file])))


@pytest.mark.parametrize(
    "fields", [{"include": []}, {"include": ["/abs"]}, {"exclude": ["../x"]}, {"errors": "ignore"}, {"root": ""}]
)
def test_parameters_are_checked(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Text.model_validate({"root": "x", **fields})
