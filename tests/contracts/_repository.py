"""Where things are in the repository, and what git tracks there."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "headrace"
ROOMS = ("cli", "loaders", "operators", "orchestration", "pipelines", "storage", "synthesis")


@cache
def tracked() -> dict[str, str]:
    """Path relative to the root -> git mode, of everything that git tracks."""
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-files", "--stage", "-z"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {
        path: mode_hash.split()[0] for mode_hash, _, path in (row.partition("\t") for row in listed.split("\0") if row)
    }


def modules(*folders: str) -> Iterator[Path]:
    """Every Python file under these folders of the root, sorted; links are not followed."""
    for folder in folders:
        yield from sorted(path for path in (ROOT / folder).rglob("*.py") if "__pycache__" not in path.parts)


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, full module name) of every import statement under `tree`, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
