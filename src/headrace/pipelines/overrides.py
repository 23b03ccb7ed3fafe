"""`--set a.b=c`: change one value of a pipeline file by its dotted path, before the file is checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import Any

import yaml

from headrace.errors import SpecError

_PART = re.compile(r"\[(\d+)\]")


def parse_override(text: str) -> tuple[list[str], Any]:
    """Split `path=value`; the value is read as YAML.  Raises SpecError where there is no `=` or no path.

    >>> parse_override("steps[1].min_words=10")
    (['steps', '1', 'min_words'], 10)
    """
    path, equals, value = text.partition("=")
    parts = [part for part in _PART.sub(r".\1", path.strip()).split(".") if part]
    if not equals or not parts:
        raise SpecError("--set", repr(text), "must be PATH=VALUE", "write e.g. --set steps.1.min_words=10")
    try:
        return parts, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise SpecError(f"--set {path}", repr(value), "the value must be YAML", "quote it") from error


def apply_overrides(mapping: dict[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """A changed copy of `mapping`.  Raises SpecError where a path leads through nothing."""
    changed: dict[str, Any] = copy.deepcopy(mapping)
    for text in overrides:
        parts, value = parse_override(text)
        place: Any = changed
        for depth, part in enumerate(parts):
            last = depth == len(parts) - 1
            here = ".".join(parts[: depth + 1])
            if isinstance(place, list):
                if not part.isdigit() or int(part) >= len(place):
                    rule = f"must be a number from 0 to {len(place) - 1}"
                    raise SpecError(f"--set {here}", repr(part), rule, "count the steps from 0, the reader")
                index: Any = int(part)
            elif isinstance(place, dict):
                index = part
                if not last and part not in place:
                    place[part] = {}
            else:
                raise SpecError(f"--set {here}", repr(part), "the path leads through a plain value", "shorten the path")
            if last:
                place[index] = value
            else:
                place = place[index]
    return changed
