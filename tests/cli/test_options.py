from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.support import Caller

READS = [
    ["dataset", "ls"],
    ["dataset", "show", "a"],
    ["dataset", "head", "a"],
    ["dataset", "log", "a"],
    ["dataset", "why", "a", "x"],
    ["dataset", "tag", "a", "t"],
    ["runs", "ls"],
    ["runs", "show", "r"],
    ["runs", "verify", "r"],
    ["resume", "r"],
]


@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_reading_creates_no_lake(call: Caller, workdir: Path, arguments: list[str]) -> None:
    told = call(*arguments, "--lake", "pool")
    assert told.code == (0 if arguments[1] == "ls" else 4)
    assert told.err.startswith(f"lake: {workdir}/pool\n")
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_json_is_one_object(call: Caller, workdir: Path, arguments: list[str]) -> None:
    told = call(*arguments, "--json")
    assert told.answer.keys() >= ({"lake"} if told.code == 0 else {"error"})
    assert told.out.count("\n") == 1


def test_lake_of_the_environment(call: Caller, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("dataset", "ls").err.startswith(f"lake: {workdir}/lake\n")
    monkeypatch.setenv("HEADRACE_LAKE", os.fspath(workdir / "pond"))
    assert call("dataset", "ls").err.startswith(f"lake: {workdir}/pond\n")
    assert call("dataset", "ls", "--lake", "pool").err.startswith(f"lake: {workdir}/pool\n")


def test_lake_that_cannot_be(call: Caller, workdir: Path) -> None:
    assert call("dataset", "ls", "--lake", "ftp://x").code == 2
