"""Examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil

import pytest

import headrace
import headrace.operators
from headrace.operators.resolve import names

MODULES = [
    "headrace.errors",
    *(module.name for module in pkgutil.walk_packages(headrace.operators.__path__, "headrace.operators.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_every_operator_module_is_among_them() -> None:
    inside = {f"headrace.operators.{name}" for name in names()}
    assert {name for name in inside if importlib.util.find_spec(name)} <= set(MODULES)
