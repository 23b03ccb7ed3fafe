"""`--set path=value`: any path of a file can be changed, nothing else changes, and nonsense is told."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SpecError
from headrace.pipelines.overrides import apply_overrides, parse_override

NAMES = st.text("abcxyz_", min_size=1, max_size=4)
PLAIN = st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc :#'\"[]{}\n", max_size=5)
TREES: st.SearchStrategy[Any] = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
MAPPINGS = st.dictionaries(NAMES, TREES, min_size=1, max_size=4)


def paths_of(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    below = [found for key, child in inner for found in paths_of(child, (*path, key))]
    return [path, *below] if path else below


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


@given(st.data(), MAPPINGS, PLAIN, st.booleans())
def test_exactly_the_value_at_the_path_changes(data: st.DataObject, mapping: Any, value: Any, brackets: bool) -> None:
    path = data.draw(st.sampled_from(paths_of(mapping)))
    parts = [f"[{part}]" if brackets and isinstance(part, int) else f".{part}" for part in path]
    text = "".join(parts).removeprefix(".") + "=" + json.dumps(value)
    before = copy.deepcopy(mapping)
    changed = apply_overrides(mapping, [text])
    assert mapping == before
    assert at(changed, path) == value
    holder = at(changed, path[:-1])
    holder[path[-1]] = at(before, path)
    assert changed == before


@given(MAPPINGS, st.lists(NAMES, min_size=1, max_size=3))
def test_a_new_key_makes_the_mappings_on_its_way(mapping: Any, names: list[str]) -> None:
    path = ".".join(["new", *names])
    changed = apply_overrides({key: value for key, value in mapping.items() if key != "new"}, [f"{path}=1"])
    assert at(changed, ("new", *names)) == 1


def test_values_are_yaml_and_later_ones_win() -> None:
    assert parse_override("a=") == (["a"], None)
    assert parse_override("a.b[0][1].c = [1, x: y]") == (["a", "b", "0", "1", "c"], [1, {"x": "y"}])
    assert parse_override("a=b=c") == (["a"], "b=c")
    assert apply_overrides({"a": 0}, ["a=1", "a=2"]) == {"a": 2}


@pytest.mark.parametrize("text", ["", "a", "=1", ".=1", " =1"])
def test_what_is_no_override_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="must be PATH=VALUE"):
        parse_override(text)


def test_a_value_that_is_not_yaml_is_refused() -> None:
    with pytest.raises(SpecError, match=r"--set a: got '\['; the value must be YAML; quote it"):
        parse_override("a=[")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps.2.op=x", r"--set steps\.2: got '2'; must be a number from 0 to 1"),
        ("steps.first.op=x", r"--set steps\.first: got 'first'; must be a number from 0 to 1"),
        ("steps.-1.op=x", r"--set steps\.-1: .*must be a number from 0 to 1"),
        ("output.name=x", r"--set output\.name: got 'name'; the path leads through a plain value"),
    ],
)
def test_a_path_through_nothing_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        apply_overrides({"output": "o", "steps": [{"op": "a"}, {"op": "b"}]}, [text])
