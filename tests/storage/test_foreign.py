from __future__ import annotations

from collections.abc import Callable

import lance
import pytest
from obstore.exceptions import GenericError

from headrace.errors import DataError, StorageUnavailable
from headrace.storage.foreign import first_line, is_missing, storage_calls
from headrace.storage.lake import Lake
from tests.storage.support import NAME, target


@pytest.mark.parametrize("error", [OSError("disk full"), PermissionError("denied"), GenericError("no route\n\nDebug")])
def test_library_errors_become_ours_with_their_cause(error: Exception) -> None:
    with pytest.raises(StorageUnavailable, match="the place: got") as told, storage_calls("the place"):
        raise error
    assert told.value.__cause__ is error
    assert "Debug" not in str(told.value)


@pytest.mark.parametrize("error", [DataError("x"), StorageUnavailable("deeper"), KeyError("x"), ValueError("x")])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as told, storage_calls("the place"):
        raise error
    assert told.value is error


def test_source_lines_of_a_library_are_cut() -> None:
    error = OSError("Disk full, /home/runner/work/lance/lance/rust/lance/src/io/commit.rs:1:2")
    assert first_line(error) == "Disk full"
    assert first_line(OSError()) == "OSError"


def test_what_lance_says_of_missing_things_is_understood(lake: Lake) -> None:
    target(lake)
    uri = lake.dataset_uri(NAME)
    calls: list[Callable[[], object]] = [
        lambda: lance.dataset(lake.dataset_uri("none")),
        lambda: lance.dataset(uri, version=7),
        lambda: lance.dataset(uri, version="none"),
        lambda: lance.dataset(uri).read_transaction(7),
        lambda: lance.dataset(uri).tags.create("tag", 7),
    ]
    for missing in calls:
        with pytest.raises((ValueError, OSError)) as told:
            missing()
        assert is_missing(told.value)
    assert not is_missing(OSError("disk full"))
    assert not is_missing(KeyError("x was not found"))
