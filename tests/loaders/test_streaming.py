from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import DatasetNotFound, MissingDependency, SpecError, StorageUnavailable
from headrace.loaders import StreamingLoader
from headrace.loaders.source import Source
from headrace.storage.lake import Lake
from tests.loaders.conftest import NAME, NUM_ROWS, reading_threads, rows, wait_for_threads, write

N = NUM_ROWS


def open_loader(lake: Lake, ref: str = f"{NAME}@1", **settings: Any) -> StreamingLoader:
    usual: dict[str, Any] = {"batch_size": 32, "columns": ["number"], "output": "numpy"}
    return StreamingLoader(ref, lake=lake, **usual | settings)


def drain(loader: StreamingLoader, limit: int | None = None) -> list[int]:
    return [int(number) for batch in itertools.islice(loader, limit) for number in batch["number"]]


def through_json(loader: StreamingLoader) -> dict[str, Any]:
    text = json.dumps(loader.state_dict())
    assert len(text) < 4_096
    return dict(json.loads(text))


def resumed(lake: Lake, state: dict[str, Any], **settings: Any) -> StreamingLoader:
    loader = open_loader(lake, **settings)
    loader.load_state_dict(state)
    return loader


# ------------------------------------------------------------------------------------------ the order


def test_an_epoch_is_the_dataset_once_and_epochs_differ(docs_lake: Lake) -> None:
    whole = drain(open_loader(docs_lake, epochs=2))
    assert sorted(whole[:N]) == sorted(whole[N:]) == list(range(N))
    assert sum(a == b for a, b in zip(whole[:N], whole[N:], strict=True)) < 20


def test_threads_and_prefetching_do_not_touch_the_order(docs_lake: Lake) -> None:
    wanted = drain(open_loader(docs_lake, epochs=2, num_threads=0))
    for num_threads, prefetch_batches in itertools.product([0, 1, 2, 5], [1, 4, 100]):
        told = drain(open_loader(docs_lake, epochs=2, num_threads=num_threads, prefetch_batches=prefetch_batches))
        assert told == wanted


def test_seeds_differ_and_no_shuffle_is_as_stored(docs_lake: Lake) -> None:
    assert drain(open_loader(docs_lake, seed=1)) != drain(open_loader(docs_lake, seed=2))
    assert drain(open_loader(docs_lake, shuffle=False)) == list(range(N))


def test_deleted_rows_are_skipped(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake, f"{NAME}@2")
    assert sorted(drain(loader)) == [number for number in range(N) if number % 10 != 3]
    assert loader.num_rows == 903


def test_each_loop_is_the_next_epoch(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    assert drain(loader) + drain(loader) + drain(loader) == drain(open_loader(docs_lake, epochs=3))


def test_a_loop_after_a_break_goes_on_behind_it(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    assert drain(loader, 5) + drain(loader) == drain(open_loader(docs_lake))


def test_a_break_at_the_last_batch_does_not_empty_the_next_loop(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    for _ in range(2):
        assert len(drain(loader, len(loader))) == N


def test_nor_does_it_after_a_resume(docs_lake: Lake) -> None:
    loader = resumed(docs_lake, open_loader(docs_lake).state_dict())
    for _ in range(2):
        assert len(drain(loader, len(loader))) == N


def test_endless(docs_lake: Lake) -> None:
    assert drain(open_loader(docs_lake, epochs=None), 100) == drain(open_loader(docs_lake, epochs=4), 100)


# ------------------------------------------------------------------------------------------ the version


def test_the_version_stays_pinned(lake: Lake) -> None:
    dataset = write(lake, NAME, rows(0, 100))
    loader = open_loader(lake, NAME)
    dataset.delete("number < 50")
    assert (loader.version, loader.reference, loader.num_rows) == (1, f"{NAME}@1", 100)
    assert sorted(drain(loader)) == list(range(100))
    newer = open_loader(lake, NAME)
    assert (newer.version, newer.reference) == (2, f"{NAME}@2")


def test_lake_by_text_and_by_environment(docs_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert StreamingLoader(f"{NAME}@1", lake=docs_lake.uri, batch_size=1).num_rows == N
    monkeypatch.setenv("HEADRACE_LAKE", docs_lake.uri)
    assert StreamingLoader(f"{NAME}@2", batch_size=1).reference == f"{NAME}@2"


# ------------------------------------------------------------------------------------------ resuming


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_resume_anywhere_is_the_uninterrupted_stream(docs_lake: Lake, data: st.DataObject) -> None:
    """Stops up to three times, each time going on with another batch size and number of threads."""
    wanted = drain(open_loader(docs_lake, epochs=3, num_threads=0, batch_size=500))
    told: list[int] = []
    state = open_loader(docs_lake, epochs=3).state_dict()
    for _ in range(data.draw(st.integers(1, 3))):
        loader = resumed(
            docs_lake,
            state,
            epochs=3,
            batch_size=data.draw(st.integers(1, 300)),
            num_threads=data.draw(st.integers(0, 3)),
            prefetch_batches=data.draw(st.integers(1, 6)),
        )
        told += drain(loader, data.draw(st.integers(0, 12)))
        state = through_json(loader)
        loader.close()
        if state["position"] == 3 * N and state["finished"]:
            break  # this one has seen the end of its loop; the next would begin the fourth epoch
    else:
        told += drain(resumed(docs_lake, state, epochs=3, batch_size=64))
    assert told == wanted


def test_batches_made_ready_but_not_taken_are_not_counted(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake, prefetch_batches=16)
    loop = iter(loader)
    first = [int(number) for _ in range(3) for number in next(loop)["number"]]
    shared = loop._batches._shared  # type: ignore[union-attr]
    with shared.changed:
        assert shared.changed.wait_for(lambda: len(shared.ready) == 16, timeout=10)
    assert loader.state_dict()["position"] == 96
    assert first + drain(resumed(docs_lake, through_json(loader))) == drain(open_loader(docs_lake))
    loader.close()


def test_state_at_the_exact_end_of_an_epoch(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake, epochs=3)
    first = drain(loader, len(loader))
    assert loader.state_dict()["position"] == N
    assert first + drain(resumed(docs_lake, through_json(loader), epochs=3)) == drain(open_loader(docs_lake, epochs=3))
    loader.close()


def test_state_at_the_last_batch_of_a_loop_leaves_only_its_end(docs_lake: Lake) -> None:
    """The trainer that stopped was still in its loop; the one that goes on leaves it and enters the next."""
    loader = open_loader(docs_lake)
    sizes_and_states = [(len(batch["number"]), through_json(loader)) for batch in loader]
    size, state = sizes_and_states[-1]
    assert size == N % 32
    again = resumed(docs_lake, state)
    assert drain(again) == []
    assert drain(again) == drain(loader)


def test_state_after_a_loop_begins_the_next(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    drain(loader)
    again = resumed(docs_lake, through_json(loader))
    second = drain(again)
    assert sorted(second) == list(range(N))
    assert second == drain(loader)


def test_state_of_a_loop_that_has_begun_but_given_nothing_begins_it(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    drain(loader, len(loader))  # leaves without seeing the end
    loop = iter(loader)
    assert len(drain(resumed(docs_lake, through_json(loader)))) == N
    loop.close()


def test_a_finished_epoch_can_be_prolonged(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    first = drain(loader)
    assert first + drain(resumed(docs_lake, loader.state_dict(), epochs=3)) == drain(open_loader(docs_lake, epochs=3))


def test_second_resume_in_one_epoch(docs_lake: Lake) -> None:
    first = open_loader(docs_lake)
    told = drain(first, 4)
    second = resumed(docs_lake, through_json(first))
    told += drain(second, 3)
    assert second.state_dict()["position"] == 7 * 32
    third = resumed(docs_lake, through_json(second))
    assert told + drain(third) == drain(open_loader(docs_lake))


def test_resume_before_anything_is_taken_changes_nothing(docs_lake: Lake) -> None:
    first = open_loader(docs_lake, epochs=2)
    drain(first, 4)
    again = resumed(docs_lake, through_json(first), epochs=2)
    assert again.state_dict() == first.state_dict()
    iter(again)
    assert again.state_dict() == first.state_dict()


def test_resume_in_the_third_epoch(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake, epochs=4)
    told = drain(loader, 2 * len(loader) + 9)
    assert loader.state_dict()["position"] == 2 * N + 9 * 32
    again = resumed(docs_lake, through_json(loader), epochs=4, batch_size=11, num_threads=0)
    assert told + drain(again) == drain(open_loader(docs_lake, epochs=4))


@pytest.mark.parametrize("num_taken", [30, 31, 32])
def test_resume_with_the_last_batch_left_out(docs_lake: Lake, num_taken: int) -> None:
    """31 full batches an epoch; the 11 rows after them are never given, resumed or not."""
    loader = open_loader(docs_lake, epochs=2, drop_last=True)
    told = drain(loader, num_taken)
    again = resumed(docs_lake, through_json(loader), epochs=2, drop_last=True)
    wanted = drain(open_loader(docs_lake, epochs=2, drop_last=True))
    assert len(wanted) == 2 * 31 * 32
    assert told + drain(again) == wanted


def test_refuses_a_state_of_another_stream(docs_lake: Lake) -> None:
    state = open_loader(docs_lake, seed=3).state_dict()
    other = open_loader(docs_lake, f"{NAME}@2", block_rows=7, shuffle=False)
    before = other.state_dict()
    with pytest.raises(SpecError) as caught:
        other.load_state_dict(state)
    assert caught.value.got == (
        "version 1 (here 2), num_rows 1003 (here 903), seed 3 (here 0), shuffle True (here False), "
        "block_rows 256 (here 7)"
    )
    assert other.state_dict() == before


# ------------------------------------------------------------------------------------------ loops and threads


@pytest.mark.parametrize("num_threads", [0, 2])
def test_break_ends_the_threads(docs_lake: Lake, num_threads: int) -> None:
    loader = open_loader(docs_lake, num_threads=num_threads, epochs=None)
    for _ in loader:
        break
    wait_for_threads()
    assert loader.state_dict()["position"] == 32


def test_close_and_with_end_the_threads_at_once(docs_lake: Lake) -> None:
    with open_loader(docs_lake, epochs=None) as loader:
        loop = iter(loader)
        next(loop)
        assert reading_threads()
    assert reading_threads() == []
    assert next(loop, None) is None
    assert loader.state_dict()["position"] == 32


def test_a_new_loop_ends_the_one_before(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    first = iter(loader)
    told = [int(number) for number in next(first)["number"]]
    told += drain(loader)
    assert next(first, None) is None
    assert told == drain(open_loader(docs_lake))


def test_no_thread_is_left_over_200_epochs(lake: Lake) -> None:
    write(lake, NAME, rows(0, 40))
    loader = open_loader(lake, batch_size=16)
    seen = set()
    for _ in range(200):
        seen.add(tuple(drain(loader)))
        assert reading_threads() == []
    assert len(seen) == 200
    assert loader.state_dict()["position"] == 200 * 40


def test_an_error_while_reading_comes_out_and_can_be_retried(docs_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = open_loader(docs_lake)
    told = drain(loader, 2)
    true_read = Source.read

    def failing(self: Source, pieces: Any) -> Any:
        raise StorageUnavailable("docs/python@1, fragment 0", "timeout")

    monkeypatch.setattr(Source, "read", failing)
    loop = iter(loader)
    with pytest.raises(StorageUnavailable, match="fragment 0: got timeout"):
        next(loop)
    assert reading_threads() == []
    assert next(loop, None) is None
    monkeypatch.setattr(Source, "read", true_read)
    assert told + drain(loader) == drain(open_loader(docs_lake))


def test_ctrl_c_in_the_training_step_loses_nothing(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake)
    told: list[int] = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        for batch in loader:
            told += batch["number"].tolist()
            if len(told) == 96:
                raise KeyboardInterrupt
    assert told + drain(loader) == drain(open_loader(docs_lake))


def test_an_interpreter_that_exits_in_a_loop_does_not_hang(docs_lake: Lake) -> None:
    code = f"""
from headrace.loaders import StreamingLoader
loader = StreamingLoader({NAME + "@1"!r}, lake={docs_lake.uri!r}, batch_size=8, epochs=None, output="numpy")
loop = iter(loader)
print(len(next(loop)["id"]))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "8\n", "")


# ------------------------------------------------------------------------------------------ edges and errors


def test_length_and_repr(docs_lake: Lake) -> None:
    assert len(open_loader(docs_lake)) == 32 == len(list(open_loader(docs_lake)))
    assert len(open_loader(docs_lake, drop_last=True)) == 31 == len(list(open_loader(docs_lake, drop_last=True)))
    assert repr(open_loader(docs_lake)) == "StreamingLoader('docs/python@1', batch_size=32, position=0)"


@pytest.mark.parametrize("epochs", [1, None])
@pytest.mark.parametrize("drop_last", [True, False])
def test_an_empty_dataset_gives_nothing(lake: Lake, epochs: int | None, drop_last: bool) -> None:
    write(lake, NAME, rows(0, 1)).delete("number = 0")
    loader = open_loader(lake, NAME, epochs=epochs, drop_last=drop_last)
    assert (loader.num_rows, len(loader), list(loader), list(loader)) == (0, 0, [], [])
    again = open_loader(lake, NAME, epochs=epochs)
    again.load_state_dict(through_json(loader))
    assert list(again) == []


def test_a_created_but_never_filled_dataset_gives_nothing(lake: Lake) -> None:
    write(lake, NAME, rows(0, 0))
    assert list(open_loader(lake, NAME)) == []


def test_one_row(lake: Lake) -> None:
    write(lake, NAME, rows(0, 1))
    assert drain(open_loader(lake, NAME, epochs=3)) == [0, 0, 0]


def test_all_columns_with_row_ids_by_default(docs_lake: Lake) -> None:
    batch = next(iter(open_loader(docs_lake, columns=None)))
    assert list(batch) == ["id", "text", "number"]
    assert batch["id"].tolist() == [f"row-{number}" for number in batch["number"]]
    assert batch["text"].tolist() == [f"text of {number} " * (number % 5) for number in batch["number"]]


def test_arrow_output(docs_lake: Lake) -> None:
    batches = list(open_loader(docs_lake, columns=["text", "number"], output="arrow"))
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert batches[0].schema.names == ["text", "number"]
    told = [number for batch in batches for number in batch.column("number").to_pylist()]
    assert told == drain(open_loader(docs_lake))


def test_torch_output(docs_lake: Lake) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra headrace[torch]")
    told = []
    for batch in open_loader(docs_lake, columns=["id", "number"], output="auto"):
        assert batch["number"].dtype is torch.int64
        assert batch["id"] == [f"row-{number}" for number in batch["number"].tolist()]
        told += batch["number"].tolist()
    assert told == drain(open_loader(docs_lake))


def test_auto_is_numpy_without_torch(docs_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(next(iter(open_loader(docs_lake, output="auto")))["number"], np.ndarray)
    with pytest.raises(MissingDependency, match=r"pip install 'headrace\[torch\]'"):
        open_loader(docs_lake, output="torch")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"batch_size": 0}, "batch_size: got 0; must be a whole number >= 1; write batch_size=1"),
        ({"batch_size": 2.5}, "batch_size: got 2.5; must be a whole number >= 1"),
        ({"batch_size": True}, "batch_size: got True"),
        ({"batch_size": 1_004, "drop_last": True}, "batch_size: got 1004; docs/python@1 has 1003 rows"),
        ({"epochs": 0}, "epochs: got 0"),
        ({"num_threads": -1}, "num_threads: got -1; must be a whole number >= 0"),
        ({"prefetch_batches": 0}, "prefetch_batches: got 0"),
        ({"block_rows": 0}, "block_rows: got 0"),
        ({"seed": "a"}, "seed: got 'a'; must be a whole number; write"),
        ({"output": "tensor"}, "output: got 'tensor'; must be one of auto, numpy, arrow, torch"),
        ({"columns": ["txt"]}, "columns: got 'txt'; .* did you mean 'text'"),
        ({"ref": "Docs"}, "dataset name: got 'Docs'"),
    ],
)
def test_refuses_wrong_settings(docs_lake: Lake, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        open_loader(docs_lake, **settings)


def test_numpy_numbers_are_numbers(docs_lake: Lake) -> None:
    loader = open_loader(docs_lake, batch_size=np.int64(16), seed=np.int32(4))
    assert drain(loader) == drain(open_loader(docs_lake, batch_size=16, seed=4))
    through_json(loader)


def test_unknown_dataset_and_version(docs_lake: Lake) -> None:
    with pytest.raises(DatasetNotFound, match="near names: docs/python"):
        open_loader(docs_lake, "docs/pyton")
    with pytest.raises(DatasetNotFound, match="version 9"):
        open_loader(docs_lake, f"{NAME}@9")


def test_import_is_light() -> None:
    heavy = ["ray", "prefect", "numba", "polars", "torch", "lance", "pandas"]
    code = f"import sys, headrace.loaders; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
