"""Small datasets with several fragments, and some with deleted rows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from headrace.storage.lake import Lake

NAME = "docs/python"
NUM_ROWS = 1_003
WriteRows = Callable[..., lance.LanceDataset]


def rows(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop)
    return pa.table(
        {
            "id": pa.array([f"row-{number}" for number in numbers], pa.string()),
            "text": pa.array([f"text of {number} " * (number % 5) for number in numbers], pa.large_string()),
            "number": pa.array(numbers, pa.int64()),
        }
    )


def write(lake: Lake, name: str, table: pa.Table, rows_a_fragment: int = 150) -> lance.LanceDataset:
    Path(lake.dataset_uri(name)).parent.mkdir(parents=True, exist_ok=True)
    return lance.write_dataset(
        table, lake.dataset_uri(name), max_rows_per_file=rows_a_fragment, enable_stable_row_ids=True
    )


@pytest.fixture(scope="session")
def docs_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """`docs/python`: version 1 has 1,003 rows in 7 fragments; version 2 lacks every row whose number ends in 3."""
    lake = Lake.resolve(str(tmp_path_factory.mktemp("loaders") / "lake"))
    dataset = write(lake, NAME, rows(0, NUM_ROWS))
    dataset.delete("number % 10 = 3")
    return lake


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("headrace-")]


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Every test in this folder ends all the threads that it started, at the latest soon after its last line."""
    yield
    wait_for_threads()


def wait_for_threads(seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    for thread in reading_threads():
        thread.join(max(0.0, end - time.monotonic()))
    assert reading_threads() == []
