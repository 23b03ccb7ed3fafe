"""The root shows the architecture: a tracked link for each room, a README in each folder, no bare imports."""

from __future__ import annotations

import ast

import pytest

from tests.contracts._repository import PACKAGE, ROOMS, ROOT, imports, modules, tracked

LINK_MODE = "120000"


def test_rooms_are_the_packages_folders() -> None:
    found = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file())
    assert found == list(ROOMS)


def test_each_room_has_one_tracked_link_at_the_root() -> None:
    links = {path for path, mode in tracked().items() if mode == LINK_MODE}
    assert links == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_link_leads_into_the_package(room: str) -> None:
    assert (ROOT / room).readlink().as_posix() == f"src/headrace/{room}"


@pytest.mark.parametrize("room", ROOMS)
def test_room_is_documented(room: str) -> None:
    assert (PACKAGE / room / "README.md").is_file()
    assert ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text("utf-8")))


@pytest.mark.parametrize("folder", ["docs", "examples", "deploy", "benchmarks"])
def test_folder_at_the_root_is_documented(folder: str) -> None:
    assert (ROOT / folder / "README.md").is_file()


def test_every_package_has_a_docstring() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob("__init__.py")
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []


def test_operators_init_files_hold_a_docstring_only() -> None:
    """The folder is the registry: adding an operator never edits an `__init__`."""
    busy = [
        path.relative_to(ROOT).as_posix()
        for path in (PACKAGE / "operators").rglob("__init__.py")
        if len(ast.parse(path.read_text("utf-8")).body) != 1
    ]
    assert busy == []


def test_every_folder_with_tests_is_a_package() -> None:
    """Else two test modules of one name shadow each other."""
    missing = {
        path.parent.relative_to(ROOT).as_posix()
        for path in modules("tests")
        if not (path.parent / "__init__.py").is_file()
    }
    assert missing == set()


def _bare_imports(source: str) -> list[tuple[int, str]]:
    return [(line, name) for line, name in imports(ast.parse(source)) if name.partition(".")[0] in ROOMS]


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in modules("src", "tests", "examples", "benchmarks")
        for line, name in _bare_imports(path.read_text("utf-8"))
    ]
    assert found == []


def test_bare_imports_are_seen() -> None:
    source = "import storage.lake\ndef f():\n    from operators import text\nimport headrace.storage\n"
    assert _bare_imports(source) == [(1, "storage.lake"), (3, "operators")]
