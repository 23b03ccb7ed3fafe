"""The pipeline benchmark runs on data it has not seen, checks the result, and gives its numbers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "The water of the river and the wheel that turns with it have a long way to go, number {}. "


def benchmark(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "pipeline.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files, one of them compressed and one with a name that is a glob; half of the texts too short."""
    folder = tmp_path_factory.mktemp("shards")
    for number, name in enumerate(["a.jsonl", "b [1].jsonl", "deeper/c.jsonl.gz"]):
        lines = [
            json.dumps({"body": SENTENCE.format(row if number else 7) * (4 if row % 2 else 1), "n": row})
            for row in range(40)
        ]
        body = ("\n".join(lines) + "\n\n").encode()
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
    (folder / "notes.txt").write_text("not an input", "utf-8")
    return folder


def test_it_measures_runs_and_a_resume(shards: Path, tmp_path: Path) -> None:
    done = benchmark(
        "--input", shards, "--output", tmp_path / "out", "--engine", "local", "--json", "--text-column", "body",
        "--unit-bytes", 4096,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["rows_per_s"] > 0
    assert found["mb_per_s"] > 0
    assert 0 < found["first_row_s"] <= found["seconds"]
    assert found["resume_reread_frac"] == 0
    assert found["resume_finished_units"] >= 0.6 * found["units"]
    assert found["units"] > found["files"] == 3
    assert found["rows_in"] == 120
    assert sum(found["rows"].values()) == 120
    assert found["rows"]["kept"] == 20  # the odd numbers; all of a.jsonl's long texts are number 7
    assert found["text_bytes"] > found["input_bytes"]
    assert {"cpu", "cores", "memory_gib"} <= set(found["machine"])
    assert {"headrace", "pylance", "ray"} <= set(found["versions"])
    assert sum(found["where"].values()) == pytest.approx(found["seconds"], abs=0.02)


def test_it_refuses_what_it_cannot_measure(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "is not empty" in benchmark("--input", shards, "--output", tmp_path / "full").stderr
    done = benchmark("--input", tmp_path, "--output", tmp_path / "out")
    assert (done.returncode, "no .jsonl" in done.stderr) == (2, True)
