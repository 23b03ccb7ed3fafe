"""`headrace operators`: what a pipeline file can name, from the modules themselves."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import JsonOption
from headrace.cli.output import Output
from headrace.cli.search_path import extend_search_path

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from headrace.operators.shapes import Operator

_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >=", "max_length": "length <="}


def operators(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An operator, as text.length or mymodule:MyOp.")
    ] = None,
    is_json: JsonOption = False,
) -> None:
    """List the operators, or tell all about one."""
    output = Output(is_json)
    if name is None:
        _list(output)
    else:
        extend_search_path()
        _tell(output, name)


def _list(output: Output) -> None:
    from headrace.operators.resolve import PLACES, camel_case, names

    found = []
    for name in names():
        path = next(
            path for place in PLACES if (path := (place.folder / name.replace(".", "/")).with_suffix(".py")).is_file()
        )
        found.append({"name": name, "group": name.rpartition(".")[0], "summary": _summary(path, camel_case(name))})
    for group in dict.fromkeys(entry["group"] for entry in found):
        output.line(group, "bold")
        rows = [[f"  {entry['name']}", entry["summary"]] for entry in found if entry["group"] == group]
        width = max(len(row[0]) for row in rows)
        for row in rows:
            output.line(f"{row[0].ljust(width)}  {row[1]}")
    output.line("all about one: headrace operators NAME; your own: mymodule:MyOp")
    output.result({"operators": found})


def _summary(path: Path, class_name: str) -> str:
    """First sentence of the class, from the source: nothing is imported."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
    return ""


def _tell(output: Output, name: str) -> None:
    from headrace.operators.resolve import operator_class
    from headrace.operators.shapes import Call, Global, Map, Reader

    kind = operator_class(name)
    shape = next(shape.__name__.lower() for shape in (Reader, Map, Call, Global) if issubclass(kind, shape))
    doc = inspect.cleandoc(kind.__doc__ or "")
    parameters = [_parameter(field_name, field) for field_name, field in kind.model_fields.items()]
    output.line(f"{name} ({shape})", "bold")
    output.line()
    output.line(doc)
    output.line()
    rows = [[p["name"], p["type"], p["default_text"], p["description"]] for p in parameters]
    if rows:
        output.table(("parameter", "type", "default", "description"), rows)
    else:
        output.line("no parameters")
    output.result({"name": name, "shape": shape, "doc": doc, "parameters": parameters, "schema": _schema(kind)})


def _schema(kind: type[Operator]) -> dict[str, Any]:
    return kind.model_json_schema()


def _parameter(name: str, field: FieldInfo) -> dict[str, Any]:
    required = field.is_required()
    default = None if required else field.get_default(call_default_factory=True, validated_data={})
    limits = [
        f"{sign} {getattr(limit, key)}"
        for limit in field.metadata
        for key, sign in _SIGNS.items()
        if hasattr(limit, key)
    ]
    told = ", ".join([_type_text(field.annotation), *limits])
    return {
        "name": name,
        "type": told,
        "required": required,
        "default": default,
        "default_text": "required" if required else _value_text(default),
        "description": field.description or "",
    }


def _value_text(value: Any) -> str:
    """As a pipeline file would have it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(_value_text(inner) for inner in value)}]"
    return str(value) if value != "" else '""'


def _type_text(kind: Any) -> str:
    """A type as people read it.

    >>> _type_text(tuple[str, ...]), _type_text(int | None)
    ('list of str', 'int or null')
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is type(None):
        return "null"
    if origin is typing.Annotated:
        return _type_text(inner[0])
    if origin is typing.Literal:
        return " | ".join(map(str, inner))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_type_text, inner))
    if origin in (tuple, list, set, frozenset):
        return f"list of {_type_text(inner[0])}" if inner else "list"
    if origin is dict:
        return f"mapping of {_type_text(inner[0])} to {_type_text(inner[1])}"
    return getattr(kind, "__name__", str(kind))
