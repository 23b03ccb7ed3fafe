"""The input manifest: its digest changes with anything that may change the rows."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from headrace.operators.shapes import InputFile
from headrace.pipelines.manifest import Manifest
from tests.pipelines.plain import Lines, write_lines

FILE = InputFile("a.txt", "/in", 12, "mark")


def test_it_lists_what_the_reader_lists(tmp_path: Path) -> None:
    write_lines(tmp_path, b=["four"], a=["one", "two"])
    manifest = Manifest.of(Lines(root=str(tmp_path)))
    assert [file.path for file in manifest.files] == ["a.txt", "b.txt"]
    assert manifest.size_bytes == 13
    assert manifest.to_plain()[1] == {
        "path": "b.txt",
        "root": str(tmp_path),
        "size_bytes": 5,
        "mark": str(os.stat(tmp_path / "b.txt").st_mtime_ns),
    }


@pytest.mark.parametrize("change", [{"path": "b.txt"}, {"root": "/other"}, {"size_bytes": 13}, {"mark": "other"}])
def test_every_part_of_a_file_counts(change: dict[str, object]) -> None:
    assert Manifest((FILE,)).digest != Manifest((dataclasses.replace(FILE, **change),)).digest  # type: ignore[arg-type]


def test_the_set_of_files_counts() -> None:
    other = dataclasses.replace(FILE, path="b.txt")
    digests = {Manifest(files).digest for files in [(), (FILE,), (other,), (FILE, other)]}
    assert len(digests) == 4
    assert Manifest((FILE,)).digest == Manifest((dataclasses.replace(FILE),)).digest
