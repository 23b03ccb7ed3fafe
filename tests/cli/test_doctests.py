"""The examples in this room's docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import headrace.cli

MODULES = ["headrace", *(f"headrace.cli.{found.name}" for found in pkgutil.iter_modules(headrace.cli.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 5
