from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace.errors import InputChanged, SpecError, StorageUnavailable
from headrace.operators.read._files import DANGLING, last_folder, list_files, open_planned
from headrace.operators.shapes import InputFile


def _paths(root: Path, include: list[str], exclude: list[str] | None = None) -> list[str]:
    return [file.path for file in list_files(str(root), include, exclude or [], allow_empty=True)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.txt", "a/z.txt", "a/deep/er.txt", "a.txt", "notes.md", ".hidden/x.txt"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "tree"


def test_files_come_once_and_sorted_by_path(tree: Path) -> None:
    assert _paths(tree, ["**/*.txt", "a/**", "*.txt"]) == [
        ".hidden/x.txt",
        "a.txt",
        "a/deep/er.txt",
        "a/z.txt",
        "b.txt",
    ]
    assert _paths(tree, ["**/*.txt"], ["a/**", ".hidden/**"]) == ["a.txt", "b.txt"]


def test_the_root_is_absolute_and_relative_to_the_working_directory(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.parent)
    (file,) = list_files("tree", ["b.txt"], [], allow_empty=False)
    assert (file.root, file.size_bytes, last_folder(file)) == (str(tree), 5, "tree")


def test_a_single_file_is_its_folder_and_its_name(tree: Path) -> None:
    (file,) = list_files(str(tree / "a" / "z.txt"), ["**/*.nothing"], [], allow_empty=False)
    assert (file.root, file.path) == (str(tree / "a"), "z.txt")


def test_a_missing_root_names_the_nearest_folder(tree: Path) -> None:
    with pytest.raises(SpecError, match="no such file or folder") as told:
        list_files(str(tree / "a" / "nope" / "deeper"), ["*"], [], allow_empty=True)
    assert f"{tree / 'a'} exists and holds deep, z.txt" in str(told.value)


def test_nothing_that_matches_is_an_error_unless_allowed(tree: Path) -> None:
    with pytest.raises(SpecError, match="nothing under") as told:
        list_files(str(tree), ["*.nope"], ["x"], allow_empty=False)
    assert str(tree) in str(told.value)
    assert "*.nope" in str(told.value)
    assert list_files(str(tree), ["*.nope"], [], allow_empty=True) == []


def test_linked_files_are_read_and_linked_folders_are_not_entered(tree: Path) -> None:
    (tree / "loop").symlink_to(tree)
    (tree / "link.txt").symlink_to(tree / "b.txt")
    (tree / "lost.txt").symlink_to(tree / "gone")
    found = list_files(str(tree), ["*.txt", "loop/**"], [], allow_empty=False)
    assert [file.path for file in found] == ["a.txt", "b.txt", "link.txt", "lost.txt"]
    assert found[2].size_bytes == 5
    assert found[3].mark == DANGLING


def test_a_root_that_is_a_link_is_followed(tree: Path) -> None:
    (tree.parent / "link").symlink_to(tree)
    assert _paths(tree.parent / "link", ["b.txt"]) == ["b.txt"]


def test_pipes_are_no_files(tree: Path) -> None:
    os.mkfifo(tree / "pipe.txt")
    assert "pipe.txt" not in _paths(tree, ["*.txt"])


def test_a_name_that_is_no_utf8_is_told(tree: Path) -> None:
    Path(os.fsdecode(os.fsencode(str(tree)) + b"/\xff.txt")).write_text("x")
    with pytest.raises(SpecError, match="must be UTF-8"):
        _paths(tree, ["*.txt"])
    assert _paths(tree, ["*.txt"], ["?.txt"]) == []


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Path, InputFile]:
    path = tmp_path / "a.txt"
    path.write_text("before")
    return path, list_files(str(path), [], [], allow_empty=False)[0]


def test_a_planned_file_opens(planned: tuple[Path, InputFile]) -> None:
    with open_planned(planned[1]) as handle:
        assert handle.read() == b"before"


def test_the_same_size_with_the_old_time_put_back_is_another_file(planned: tuple[Path, InputFile]) -> None:
    path, file = planned
    times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    path.write_text("behind")
    os.utime(path, ns=times)
    assert path.stat().st_mtime_ns == times[1]
    with pytest.raises(InputChanged) as told, open_planned(file):
        pass
    assert str(path) in str(told.value)
    assert file.mark in str(told.value)


def test_a_replaced_or_removed_file_is_another_file(planned: tuple[Path, InputFile], tmp_path: Path) -> None:
    path, file = planned
    (tmp_path / "other").write_text("before")
    os.replace(tmp_path / "other", path)
    with pytest.raises(InputChanged, match="mark"), open_planned(file):
        pass
    path.unlink()
    with pytest.raises(InputChanged, match="no file"), open_planned(file):
        pass


@pytest.mark.parametrize("change", ["append", "replace", "remove"])
def test_a_file_that_changes_while_it_is_read_is_told(planned: tuple[Path, InputFile], change: str) -> None:
    path, file = planned

    def read() -> None:
        with open_planned(file):
            if change == "append":
                path.write_text("before and after")
            elif change == "replace":
                path.unlink()
                path.write_text("before")
            else:
                path.unlink()

    with pytest.raises(InputChanged):
        read()


def test_a_change_explains_an_error_better(planned: tuple[Path, InputFile]) -> None:
    path, file = planned

    def read() -> None:
        with open_planned(file):
            path.write_text("shorter")
            raise ValueError("a strange byte")

    with pytest.raises(InputChanged) as told:
        read()
    assert isinstance(told.value.__cause__, ValueError)


def test_a_failing_disk_is_worth_another_try(planned: tuple[Path, InputFile]) -> None:
    def read() -> None:
        with open_planned(planned[1]):
            raise OSError(5, "Input/output error")

    with pytest.raises(StorageUnavailable, match="Input/output error"):
        read()
