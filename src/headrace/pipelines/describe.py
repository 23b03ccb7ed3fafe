"""A unit as the text that reaches a worker."""

from __future__ import annotations

import dataclasses
import json

from headrace.operators.shapes import InputFile, InputPart
from headrace.pipelines.plan import Unit


def describe_unit(unit: Unit) -> str:
    """A unit of the first segment as JSON."""
    return json.dumps({"unit": unit.number, "parts": [dataclasses.asdict(part) for part in unit.parts]})


def describe_scratch(unit: int, record: str) -> str:
    """A unit of a later segment as JSON: where the record of its scratch is."""
    return json.dumps({"unit": unit, "record": record})


def unit_of(description: str) -> Unit:
    """The inverse of `describe_unit`."""
    plain = json.loads(description)
    parts = [InputPart(**{**part, "file": InputFile(**part["file"])}) for part in plain["parts"]]
    return Unit(plain["unit"], tuple(parts))
