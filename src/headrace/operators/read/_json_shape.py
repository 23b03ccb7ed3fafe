"""What JSON values look like, gathered value by value, and the Arrow column that holds them all.

Promotion: null + X = X, integer + float = float64, objects field by field, arrays element by element.  Anything else in
conflict is kept as JSON text of the value.  What is seen only as null or as empty is not declared.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pyarrow as pa

from headrace.operators.read._layout import ANY_KEY, JSON, Column

FIELDS_LIMIT = 256  # an object with more keys is a dictionary, not a struct
DEPTH_LIMIT = 16
NAME_LIMIT_BYTES = 1024
COLUMNS_LIMIT = 1000  # further keys go where undeclared ones go

_KINDS = {bool: "bool", int: "int", float: "float", str: "string", dict: "object", list: "array"}


class Conflict(Exception):
    """Values that no Arrow type holds; the column becomes JSON text."""


class Shape:
    """Kinds of value seen in one place."""

    __slots__ = ("element", "fields", "kinds")

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.fields: dict[str, Shape] = {}
        self.element: Shape | None = None

    def add(self, value: Any, depth: int = 1) -> None:
        """Look at one more value."""
        if value is None:
            return
        kind = _KINDS[type(value)]
        if kind == "int" and not -(1 << 63) <= value < 1 << 63:
            kind = "large int"
        self.kinds.add(kind)
        if depth > DEPTH_LIMIT:
            return
        if kind == "object" and len(self.fields) <= FIELDS_LIMIT:
            for name, inner in value.items():
                shape = self.fields.get(name)
                if shape is None:
                    shape = self.fields[name] = Shape()
                shape.add(inner, depth + 1)
        elif kind == "array":
            if self.element is None:
                self.element = Shape()
            for inner in value:
                self.element.add(inner, depth + 1)

    def column(self) -> Column | None:
        """The column that holds all values; None where nothing says what it is."""
        if not self.kinds:
            return None
        if self.kinds <= {"int", "large int", "string"} and self.kinds not in ({"int"}, {"string"}):
            return Column(pa.large_string(), ANY_KEY)  # fine as an id, JSON text elsewhere
        try:
            type_ = self._type(1)
        except Conflict:
            return Column(pa.large_string(), JSON)
        return None if type_ is None else Column(type_)

    def _type(self, depth: int) -> pa.DataType | None:
        if self.kinds == {"int", "float"}:
            return pa.float64()
        if len(self.kinds) > 1 or depth > DEPTH_LIMIT:
            raise Conflict
        match next(iter(self.kinds), "null"):
            case "null":
                return None
            case "bool":
                return pa.bool_()
            case "int":
                return pa.int64()
            case "float":
                return pa.float64()
            case "string":
                return pa.large_string()
            case "array":
                element = self.element._type(depth + 1) if self.element else None
                return None if element is None else pa.list_(element)
            case "object":
                return self._struct(depth)
        raise Conflict  # an integer beyond 64 bits

    def _struct(self, depth: int) -> pa.DataType | None:
        if len(self.fields) > FIELDS_LIMIT or not all(map(is_name, self.fields)):
            raise Conflict
        types = {name: shape._type(depth + 1) for name, shape in self.fields.items()}
        fields = [pa.field(name, type_) for name, type_ in types.items() if type_ is not None]
        return pa.struct(fields) if fields else None


def is_name(name: str) -> bool:
    """Whether a key can name an Arrow field."""
    try:
        return len(name.encode()) <= NAME_LIMIT_BYTES and "\0" not in name
    except UnicodeEncodeError:
        return False


def columns_of(objects: Iterable[dict[str, Any]], text_column: str = "text") -> dict[str, Column]:
    """Columns of these objects, in the order in which their keys first come.

    A text that is no string costs its row, so that the text's column is of strings where any is one.
    """
    whole = Shape()
    for value in objects:
        for name, inner in value.items():
            shape = whole.fields.get(name)
            if shape is None:
                shape = whole.fields[name] = Shape()
            shape.add(inner)
    text = whole.fields.get(text_column)
    if text is not None and "string" in text.kinds:
        text.kinds = {"string"}
    found = ((name, shape.column()) for name, shape in whole.fields.items() if is_name(name))
    return dict(islice(((name, column) for name, column in found if column is not None), COLUMNS_LIMIT))
