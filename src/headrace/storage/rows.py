"""A few rows, shown well in a notebook and in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

_CELL_CHARS = 200


@dataclass(frozen=True)
class Rows:
    """A small table for the eye; `table` has the values."""

    table: pa.Table

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        """Row by row, one column a line: documents are too wide for a grid."""
        blocks = []
        for row in self.table.to_pylist():
            blocks.append("\n".join(f"{name}: {_cell(value)}" for name, value in row.items()))
        return "\n\n".join(blocks) or "no rows"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.table.column_names)
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(_cell(value))}</td>" for value in row) + "</tr>"
            for row in zip(*self.table.to_pydict().values(), strict=True)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = "" if value is None else str(value)
    text = "".join(letter if letter.isprintable() else " " for letter in text[: _CELL_CHARS + 1])
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}…"
