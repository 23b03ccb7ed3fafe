"""The compile cache of `headrace.operators._kernels`, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs the extra headrace[pipelines]")

# Counts words with the smallest kernel, and tells what the cache did.
SCRIPT = """
import json, sys
from headrace.operators._kernels import compile
if len(sys.argv) > 1:
    compile._STAMP = sys.argv[1]
from headrace.operators._kernels.word_count import count_words
from headrace.operators.text.length import Length
import pyarrow as pa
result = Length(min_words=3).build()(pa.table({"text": ["a b", "a b c"]}))
rules = [row and row["rule"] for row in result["_verdict"].to_pylist()]
stats = count_words.stats
print(json.dumps([rules, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""
RULES = ["min_words", None]


def _start(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)} | variables
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(process: subprocess.Popen[str]) -> list[object]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told: list[object] = json.loads(out)
    return told


def test_compiled_once_then_loaded_and_again_when_any_kernel_file_changed(tmp_path: Path) -> None:
    assert _finish(_start(tmp_path)) == [RULES, 0, 1]
    assert _finish(_start(tmp_path)) == [RULES, 1, 0]
    assert _finish(_start(tmp_path, "digest of other files")) == [RULES, 0, 1]


def test_two_processes_may_compile_at_the_same_time(tmp_path: Path) -> None:
    both = [_start(tmp_path), _start(tmp_path)]
    assert [_finish(process)[0] for process in both] == [RULES, RULES]
    assert _finish(_start(tmp_path)) == [RULES, 1, 0]


def test_without_a_folder_to_write_to_each_process_compiles(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    only_there = "numba.core.caching.UserProvidedCacheLocator"
    for _ in range(2):
        (rules, hits, _misses) = _finish(_start(blocked / "cache", NUMBA_CACHE_LOCATOR_CLASSES=only_there))
        assert (rules, hits) == (RULES, 0)


def test_the_stamp_covers_every_file_of_the_folder() -> None:
    from headrace.operators._kernels import compile as compile_module

    assert compile_module._STAMP == compile_module._folder_digest()
    files = {path.name for path in Path(compile_module.__file__).parent.glob("*.py")}
    assert {"memory.py", "utf8.py", "hashing.py", "normalize.py"} <= files
