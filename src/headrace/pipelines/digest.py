"""Digests that say *what* a step does: its source code and its parameters, chained through the steps before it.

A step's source is its operator's module and every module that it imports from the same place: for our own operators
the package `headrace.operators`, for outside code its top-level package, or its folder where it is a lone module
(but nothing that is installed there: a virtual environment often lies beside the user's own modules).  Imports are
followed in the text, without running it.  Package versions are recorded elsewhere and not part of a digest.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import Any

from headrace.errors import SpecError
from headrace.operators.resolve import operator_name
from headrace.operators.shapes import Operator

_OURS = ("headrace.operators", "headrace.synthesis")
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def hash_text(*parts: str) -> str:
    """Hex digest of some texts; their borders count."""
    joined = hashlib.blake2b(digest_size=16)
    for part in parts:
        body = part.encode()
        joined.update(len(body).to_bytes(8, "little") + body)
    return joined.hexdigest()


def hash_json(value: Any) -> str:
    """Hex digest of plain values, whatever the order of keys."""
    return hash_text(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def step_digest(operator: Operator) -> str:
    """Digest of one operator: name, parameters and source."""
    kind = type(operator)
    return hash_text(operator_name(kind), hash_json(operator.model_dump(mode="json")), source_digest(kind.__module__))


def source_digest(module: str) -> str:
    """Digest of a module's text and of what it imports from its own place.  Raises SpecError where it has no source."""
    texts = {name: path.read_bytes().decode("utf-8", "replace") for name, path in sorted(_sources(module).items())}
    return hash_text(*(part for pair in texts.items() for part in pair))


def _sources(module: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    waiting = [module]
    root = _origin(module)
    if root is None:
        raise SpecError(module, "no source file", "an operator must be importable from a file", "put it into a module")
    while waiting:
        name = waiting.pop()
        path = root if name == module else _origin(name)
        if name in found or path is None or not _same_place(module, root, name, path):
            continue
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting.extend(_imports(path.read_bytes(), package))
    return found


def _origin(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


def _same_place(module: str, root: Path, name: str, path: Path) -> bool:
    if module.startswith(_OURS):
        return name.startswith(_OURS)
    if "." in module:
        return name.split(".")[0] == module.split(".")[0]
    return name == module or (root.parent in path.parents and not any(path.is_relative_to(own) for own in _INSTALLED))


@lru_cache(maxsize=256)
def _imports(text: bytes, package: str) -> tuple[str, ...]:
    """Names that may be modules: `import a.b`, and for `from a import b` both `a` and `a.b`."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # for another Python, and imported under a condition
        return ()
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            if base:
                names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return tuple(dict.fromkeys(names))
