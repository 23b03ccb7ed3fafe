"""What reaches a person or a program: lines and tables, or one JSON object; never both.

The answer goes to stdout, everything about the answer (lake, progress, notes, errors) to stderr.  Text that came from
data is made printable first: control characters could steer a terminal.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TextIO

CELL_CHARS = 100


@dataclass(frozen=True)
class Output:
    """Where a command writes; in JSON mode all but `result` is silent."""

    is_json: bool = False

    def lake(self, uri: str) -> None:
        """Say which lake was resolved."""
        self.note(f"lake: {uri}")

    def line(self, text: str = "", style: str = "") -> None:
        """A line of the answer; may hold line breaks of ours."""
        if not self.is_json:
            write(sys.stdout, text, style)

    def note(self, text: str, style: str = "") -> None:
        """A line about the answer."""
        if not self.is_json:
            write(sys.stderr, text, style)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> None:
        """A table of the answer; columns named in `right` hold numbers."""
        if self.is_json:
            return
        cells = [[cell_text(cell) for cell in row] for row in rows]
        if sys.stdout.isatty():
            _rich_table(headers, cells, right)
        else:
            write(sys.stdout, _plain_table(headers, cells, right))

    def result(self, values: Mapping[str, Any]) -> None:
        """The one JSON object of JSON mode; ASCII only, so that no text in it can steer a terminal."""
        if self.is_json:
            sys.stdout.write(json.dumps(plain(values), allow_nan=False) + "\n")
            sys.stdout.flush()


def write(stream: TextIO, text: str, style: str = "") -> None:
    """One printable line; styled on a terminal only."""
    text = printable(text, keep="\n")
    if style and stream.isatty():
        from rich.console import Console
        from rich.text import Text

        Console(file=stream, highlight=False).print(Text(text, style), soft_wrap=True)
    else:
        stream.write(text + "\n")
    stream.flush()


def printable(text: str, keep: str = "") -> str:
    r"""The text without control, bidirectional and other unprintable characters, except those in `keep`.

    >>> printable("red \x1b[31m").endswith("[31m")
    True
    """
    return "".join(letter if letter.isprintable() or letter in keep else "\N{REPLACEMENT CHARACTER}" for letter in text)


def cell_text(text: str) -> str:
    """One line: runs of white space are one space each, the rest is printable."""
    return printable(" ".join(text.split()))


def shorten(value: Any, chars: int = CELL_CHARS) -> str:
    r"""A value for a table's cell.

    >>> shorten("one\ntwo", 5)
    'one t…'
    """
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    text = "" if value is None else str(value)
    # Cut before cleaning, so that a text of gigabytes costs nothing.
    cut = cell_text(text[: 4 * chars])
    return cut if len(cut) <= chars and len(text) <= 4 * chars else f"{cut[:chars]}…"


def plain(value: Any) -> Any:
    """As JSON values: times in ISO form, bytes in base64, numbers that JSON does not have as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def count(number: int) -> str:
    """A number of rows, files, ...

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def size(num_bytes: float) -> str:
    """Bytes in decimal units.

    >>> size(999), size(1_234_567)
    ('999 B', '1.2 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} B" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(0.123), duration(75), duration(7500)
    ('0.12 s', '1 min 15 s', '2 h 05 min')
    """
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    return f"{minutes} min {round(seconds) % 60:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> str:
    """Aligned columns that never wrap or cut: other programs may read them."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = []
    for row in (headers, *rows):
        padded = [
            cell.rjust(width) if header in right else cell.ljust(width)
            for header, cell, width in zip(headers, row, widths, strict=True)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    for header in headers:
        table.add_column(header, justify="right" if header in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)
