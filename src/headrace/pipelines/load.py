"""Read a pipeline file strictly: every error of the file at once, each with place, value, rule and nearest name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from headrace.errors import HeadraceError, SpecError
from headrace.operators.resolve import operator_class
from headrace.operators.shapes import Operator
from headrace.pipelines.overrides import apply_overrides
from headrace.pipelines.spec import Pipeline

MAX_VALUES = 20_000
"""A few aliases of aliases would otherwise unfold to more than memory holds."""


class _Lines(dict[str, int]):
    """Line number of each dotted path of a YAML file, for the place of an error."""

    def place(self, file: str, path: str) -> str:
        near = path
        while near and near not in self:
            near = near.rpartition(".")[0]
        line = f":{self[near]}" if near in self else ""
        shown = path.replace("steps.", "steps[", 1) if path.startswith("steps.") else path
        if shown.startswith("steps["):
            number, dot, rest = shown[6:].partition(".")
            shown = f"steps[{number}]{dot}{rest}"
        return f"{file}{line} {shown}".strip() if file else shown


def _walk(
    node: yaml.Node, path: str, lines: _Lines, problems: list[str], file: str, around: tuple[yaml.Node, ...] = ()
) -> Any:
    """The plain value of a node; notes lines, and keys that occur twice (YAML itself would keep the last)."""
    lines[path] = node.start_mark.line + 1
    if len(lines) > MAX_VALUES:
        rule = f"a pipeline file holds at most {MAX_VALUES} values, aliases written out"
        raise SpecError(lines.place(file, path), "more", rule, "use fewer aliases")
    if node in around:
        problems.append(f"{lines.place(file, path)}: an alias refers to what it is part of; write the value out")
        return None
    around = (*around, node)
    if isinstance(node, yaml.MappingNode):
        plain: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inner = f"{path}.{key}" if path else key
            if key in plain:
                problems.append(f"{file}:{key_node.start_mark.line + 1} {inner}: the key occurs twice; keep one")
            plain[key] = _walk(value_node, inner, lines, problems, file, around)
            lines[inner] = key_node.start_mark.line + 1
        return plain
    if isinstance(node, yaml.SequenceNode):
        return [
            _walk(child, f"{path}.{i}" if path else str(i), lines, problems, file, around)
            for i, child in enumerate(node.value)
        ]
    try:
        return yaml.safe_load(yaml.serialize(node))
    except (yaml.YAMLError, ValueError):
        got = f"got {node.value!r} with the tag {node.tag}"
        problems.append(f"{lines.place(file, path)}: {got}; must be a plain YAML value; leave the tag out or quote it")
        return None


def load_pipeline(path: str | Path, overrides: Iterable[str] = ()) -> Pipeline:
    """The pipeline of a YAML file.  Raises SpecError that lists every problem of the file."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        near = difflib.get_close_matches(file.name, [p.name for p in file.parent.glob("*.y*ml")], 1)
        fix = f"did you mean {file.parent / near[0]}?" if near else "give the path of a pipeline file"
        raise SpecError(str(path), error.strerror or str(error), "a pipeline file must be readable", fix) from error
    except UnicodeDecodeError as error:
        raise SpecError(
            str(path), f"byte {error.start}", "a pipeline file must be UTF-8", "save it as UTF-8"
        ) from error
    lines, problems = _Lines(), list[str]()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise SpecError(
            place, str(getattr(error, "problem", error)), "must be YAML", "check indentation and quotes"
        ) from error
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(
            str(path), "no mapping", "a pipeline file is a mapping with pipeline, output and steps", "see docs/"
        )
    mapping = apply_overrides(_walk(node, "", lines, problems, str(path)), overrides)
    return build(mapping, file=str(path), lines=lines, problems=problems)


def build(
    mapping: Mapping[str, Any], file: str = "", lines: _Lines | None = None, problems: list[str] | None = None
) -> Pipeline:
    """A pipeline from plain values.  Raises SpecError that lists every problem."""
    lines, problems = lines or _Lines(), problems if problems is not None else []
    steps: list[Operator] = []
    listed = mapping.get("steps")
    if not isinstance(listed, list) or not listed:
        problems.append(f"{lines.place(file, 'steps')}: got {listed!r}; must be a list of steps; start with a reader")
        listed = []
    for index, step in enumerate(listed):
        built = _step(step, f"steps.{index}", file, lines, problems)
        if built is not None:
            steps.append(built)
    head = {key: value for key, value in mapping.items() if key != "steps"}
    whole = len(steps) == len(listed) and bool(listed)
    pipeline: Pipeline | None = None
    try:
        # With a broken step the head is still checked, against a stand-in that any head accepts.
        pipeline = Pipeline(steps=tuple(steps), **head) if whole else Pipeline.model_validate({**head, "steps": ()})
    except ValidationError as error:
        for told in _tell(error, Pipeline, "", file, lines):
            if whole or "steps[0] must be a reader" not in told:
                problems.append(told)
    if len(problems) == 1:
        raise SpecError(problems[0])
    if problems or pipeline is None:
        several = SpecError(f"{file or 'pipeline'}: {len(problems)} problems\n  " + "\n  ".join(problems))
        several.problems = tuple(problems)
        raise several
    return pipeline


def _step(step: Any, path: str, file: str, lines: _Lines, problems: list[str]) -> Operator | None:
    place = lines.place(file, path)
    if not isinstance(step, dict) or "op" not in step:
        near = difflib.get_close_matches("op", list(step), 1, 0.4) if isinstance(step, dict) else []
        hint = f"did you write op as {near[0]!r}?" if near else "write e.g. - op: text.normalize"
        problems.append(f"{place}: got {step!r}; a step is a mapping with the key op; {hint}")
        return None
    try:
        kind = operator_class(str(step["op"]))
    except HeadraceError as error:
        problems.append(f"{lines.place(file, path + '.op')}: {error}")
        return None
    try:
        return kind.model_validate({key: value for key, value in step.items() if key != "op"})
    except ValidationError as error:
        problems.extend(_tell(error, kind, path, file, lines, str(step["op"])))
        return None


def _tell(
    error: ValidationError, kind: type[BaseModel], path: str, file: str, lines: _Lines, op: str = ""
) -> Iterable[str]:
    """One line a problem: place, value, rule, and the nearest valid name for an unknown key."""
    for problem in error.errors(include_url=False):
        inner = ".".join(str(part) for part in problem["loc"])
        full = ".".join(part for part in (path, inner) if part)
        place = lines.place(file, full) + (f" ({op})" if op else "")
        if problem["type"] == "extra_forbidden":
            owner = _model_at(kind, problem["loc"][:-1])
            valid = [] if owner is None else sorted(owner.model_fields)
            near = difflib.get_close_matches(str(problem["loc"][-1]), valid, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else f"valid: {', '.join(valid)}"
            yield f"{place}: got {problem['input']!r}; no such key; {hint}"
        elif problem["type"] == "missing":
            yield f"{place}: missing; the key is required; add it"
        elif problem["type"] == "value_error" and not inner:
            told = problem["msg"].removeprefix("Value error, ")
            step = re.match(r"steps\[(\d+)\] ", told)  # a rule about the whole that names the step that breaks it
            yield f"{lines.place(file, f'steps.{step[1]}')} {told[step.end() :]}" if step else f"{place}: {told}"
        else:
            hint = "; quote it" if problem["type"] == "string_type" and isinstance(problem["input"], bool | int) else ""
            yield f"{place}: got {problem['input']!r}; {problem['msg'].removeprefix('Value error, ')}{hint}"


def _model_at(kind: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The model that owns a nested key, to name its fields."""
    for part in location:
        field = kind.model_fields.get(str(part))
        inner = None if field is None else field.annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return None
        kind = inner
    return kind
