"""The example script, run as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.storage.channels import move_channel
from headrace.storage.lake import Lake
from tests.loaders.conftest import NAME, rows, write

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "stream_twice.py"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "HEADRACE_LAKE"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_streams_the_channel_of_the_lake_beside_it(tmp_path: Path) -> None:
    lake = Lake.resolve(str(tmp_path / "lake"))
    write(lake, NAME, rows(0, 500))
    move_channel(lake, NAME, "prod", 1, "for the example")
    ran = run(tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "docs/python@1: 2 epochs of 500 rows" in ran.stdout
    assert re.search(r"uninterrupted: 1,000 rows, .* rows/s", ran.stdout)
    assert "stopped in the middle of epoch 1 after 279 of 500 rows" in ran.stdout
    assert "721 rows more" in ran.stdout
    assert "ok: resumed stream equals the uninterrupted one" in ran.stdout
    assert "WRONG" not in ran.stdout


@pytest.mark.parametrize(("num_rows", "stop"), [(9, 5), (60, 30), (90, 45)])
def test_stops_inside_the_first_epoch_of_a_small_dataset_too(tmp_path: Path, num_rows: int, stop: int) -> None:
    lake = Lake.resolve(str(tmp_path / "lake"))
    write(lake, NAME, rows(0, num_rows))
    ran = run(tmp_path, NAME)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"stopped in the middle of epoch 1 after {stop} of {num_rows} rows" in ran.stdout


def test_says_what_is_missing(tmp_path: Path) -> None:
    ran = run(tmp_path, "docs/nothing")
    assert ran.returncode == 4
    assert "docs/nothing" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_row_twice_is_told(tmp_path: Path) -> None:
    """The check can fail: an id that occurs twice is no dataset with every row once."""
    lake = Lake.resolve(str(tmp_path / "lake"))
    write(lake, NAME, pa.concat_tables([rows(0, 5), rows(4, 9)]))
    ran = run(tmp_path, NAME)
    assert ran.returncode == 1
    assert "WRONG: each epoch has every row once" in ran.stdout
