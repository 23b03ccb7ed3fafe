"""Digests that say *what* a step does: its source code and its parameters, chained through the steps before it.

A step's source is its operator's module and every module that it imports from the same place: for our own operators
the package `headrace.operators`, for outside code its top-level package and all that lies in the folder which holds
that package or lone module (but nothing that is installed there: a virtual environment often lies beside the user's
own modules).  Imports are followed in the text, without running it.  Package versions are recorded elsewhere and not
part of a digest.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import sys
import sysconfig
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from headrace.errors import SpecError
from headrace.operators.resolve import operator_name
from headrace.operators.shapes import Operator

_digested: dict[str, tuple[ModuleSpec, bytes]] = {}
"""Module -> the import of it that was digested, and its text then."""

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
    """Digest of one operator: name, parameters and source.

    Raises SpecError where the source is not what this process runs: in a notebook, a module was edited after its use.
    """
    kind = type(operator)
    if not kind.__module__.startswith(_OURS):
        for name, path in _sources(kind.__module__).items():
            _check_loaded(name, path.read_bytes())
    return hash_text(operator_name(kind), hash_json(operator.model_dump(mode="json")), source_digest(kind.__module__))


def source_digest(module: str) -> str:
    """Digest of a module's text and of what it imports from its own place.  Raises SpecError where it has no source."""
    texts = {name: path.read_bytes().decode("utf-8", "replace") for name, path in sorted(_sources(module).items())}
    return hash_text(*(part for pair in texts.items() for part in pair))


def _check_loaded(name: str, text: bytes) -> None:
    if (module := sys.modules.get(name)) is None or module.__spec__ is None:
        return
    spec, first = _digested.get(name, (None, b""))
    if spec is not module.__spec__:  # not seen yet, or imported anew since
        _digested[name] = (module.__spec__, text)
    elif first != text:
        rule = "a run's rows must come from the code that names them"
        fix = f"start a new process (restart the kernel), or importlib.reload({name})"
        raise SpecError(f"module {name}", "a file that was edited after this process had used it", rule, fix)


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
    top = name.split(".")[0]
    if top == module.split(".")[0]:
        return True
    home = root.parents[module.count(".") + (root.name == "__init__.py")]
    is_installed = top == "headrace" or any(path.is_relative_to(own) for own in _INSTALLED)
    return home in path.parents and not is_installed


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
