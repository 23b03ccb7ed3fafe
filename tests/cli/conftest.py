"""A project in an empty working directory, and a command to call in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Caller, write_project


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Iterator[Caller]:
    """Commands in this process; what they put on the search path goes away again, and so do the modules found there."""
    before, modules = list(sys.path), set(sys.modules)
    yield Caller(capsys)
    sys.path[:] = before
    for name in set(sys.modules) - modules:
        if name == "own":
            del sys.modules[name]


@pytest.fixture
def project(workdir: Path) -> Path:
    """A working directory with input, operators and the pipeline file `notes.yaml`."""
    write_project(workdir)
    return workdir
