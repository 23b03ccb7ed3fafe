from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headrace.cli.search_path import extend_search_path


def test_working_directory_first_and_the_files_folder_last(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/usr/lib"])
    extend_search_path("sub/p.yaml")
    extend_search_path("sub/p.yaml")
    assert sys.path == [str(workdir), "/usr/lib", str(workdir / "sub")]


def test_without_a_file(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/usr/lib"])
    extend_search_path()
    assert sys.path == [str(workdir), "/usr/lib"]


def test_working_directory_that_is_gone(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/usr/lib"])
    workdir.rmdir()
    extend_search_path("p.yaml")
    assert sys.path == ["/usr/lib"]
