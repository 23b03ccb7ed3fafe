"""The pipeline as a value: what it refuses, and that its plain form keeps everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headrace.operators.resolve import names, operator_class
from headrace.operators.shapes import Operator, Reader
from headrace.pipelines.load import build, load_pipeline
from headrace.pipelines.spec import Gates, Pipeline
from tests.pipelines.plain import FirstOfText, Lines, Shout, Without, lines_pipeline

# What an operator needs beyond its defaults.
NEEDED: dict[str, dict[str, Any]] = {"text.length": {"min_words": 3}}


def given_to(op: str, kind: type[Operator]) -> dict[str, Any]:
    """Parameters that differ from the defaults wherever another value is as valid."""
    given: dict[str, Any] = {name: "some/name" for name, field in kind.model_fields.items() if field.is_required()}
    given |= NEEDED.get(op, {})
    for name, field in kind.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if name in given or not isinstance(default, bool | int | float):
            continue
        for other in (not default,) if isinstance(default, bool) else (default + 1, default / 2):
            try:
                kind.model_validate({**given, name: other})
            except ValidationError:
                continue
            given[name] = other
            break
    return given


@pytest.mark.parametrize("op", [name for name in names() if not name.startswith("synth")])
def test_yaml_pipeline_mapping_and_back_keeps_every_parameter(op: str, tmp_path: Path) -> None:
    kind = operator_class(op)
    operator = kind.model_validate(given_to(op, kind))
    steps = (operator,) if isinstance(operator, Reader) else (Lines(root="in"), operator)
    spec = Pipeline(pipeline="p", output="o", steps=steps)
    plain = spec.to_mapping()
    assert set(plain["steps"][-1]) == {"op", *kind.model_fields}
    assert build(plain) == spec
    file = tmp_path / "p.yaml"
    lines = [f"  - op: {step['op']}\n" for step in plain["steps"]]
    for number, step in enumerate(plain["steps"]):
        lines[number] += "".join(f"    {key}: {as_yaml(value)}\n" for key, value in step.items() if key != "op")
    file.write_text("pipeline: p\noutput: o\nsteps:\n" + "".join(lines), "utf-8")
    assert load_pipeline(file) == spec


def as_yaml(value: Any) -> str:
    import json

    return json.dumps(value)  # JSON is YAML


def test_every_field_of_the_head_survives() -> None:
    spec = Pipeline(
        pipeline="web",
        output="corpora/web",
        channel="prod",
        write="append",
        rejects="sample",
        unit_bytes=4096,
        gates=Gates(min_rows=3, max_drop_frac=0.5, max_quarantine_frac=0.25),
        steps=(Lines(root="in", dies_on="x"), Without(word="w"), FirstOfText(min_length=4), Shout(mark="?")),
    )
    plain = spec.to_mapping()
    assert plain["gates"] == {"min_rows": 3, "max_drop_frac": 0.5, "max_quarantine_frac": 0.25}
    assert [step["op"] for step in plain["steps"]] == [
        f"tests.pipelines.plain:{name}" for name in ("Lines", "Without", "FirstOfText", "Shout")
    ]
    assert plain["steps"][2]["min_length"] == 4
    assert build(plain) == spec


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"steps": ()}, "steps[0] must be a reader"),
        ({"steps": (Shout(),)}, "steps[0] must be a reader"),
        ({"steps": (Lines(root="a"), Shout(), Lines(root="b"))}, "steps[2] is a second reader"),
        ({"output": "Web"}, "output"),
        ({"output": "web.rejects"}, "belongs to web"),
        ({"output": "web.quarantine"}, "belongs to web"),
        ({"pipeline": "a b"}, "pipeline"),
        ({"channel": "2026"}, "channel"),
        ({"unit_bytes": 1023}, "unit_bytes"),
        ({"write": "merge"}, "write"),
        ({"rejects": "all"}, "rejects"),
        ({"gates": {"max_drop_frac": 1.5}}, "max_drop_frac"),
        ({"gates": {"min_rows": -1}}, "min_rows"),
        ({"gates": {"max_rows": 1}}, "max_rows"),
        ({"step": ()}, "step"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    fine: dict[str, Any] = {"pipeline": "p", "output": "o", "steps": (Lines(root="a"),)}
    Pipeline.model_validate(fine)
    with pytest.raises(ValidationError) as refused:
        Pipeline.model_validate({**fine, **given})
    assert told in str(refused.value)


def test_a_pipeline_is_frozen_and_knows_its_reader(tmp_path: Path) -> None:
    spec = lines_pipeline(tmp_path, Shout())
    assert spec.reader == Lines(root=str(tmp_path))
    with pytest.raises(ValidationError):
        spec.output = "other"  # type: ignore[misc]
