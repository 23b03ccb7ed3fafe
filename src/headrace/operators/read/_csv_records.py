"""Records of a CSV stream with their places; what is no record costs its first line, and reading goes on after it."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from headrace.operators.read._lines import LINE_LIMIT_BYTES
from headrace.operators.read._streams import BrokenStream
from headrace.operators.shapes import RAW_LIMIT_BYTES

FIELD_LIMIT = 64 << 20  # letters; a quote that is never closed would take the rest of the file

_BOM = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """The fields of a record, or what is wrong with it and its bytes."""

    offset: int  # of its first byte in the stream
    line: int  # 1-based
    fields: list[str]
    error: str = ""
    raw: bytes = b""


def read_records(blocks: Iterator[bytes], delimiter: str) -> Iterator[Record]:
    """Records in order, quoted line ends included; empty lines are left out.  The first one says how many fields."""
    if csv.field_size_limit() < FIELD_LIMIT:
        csv.field_size_limit(FIELD_LIMIT)  # the module's one limit for all; raised, it does nobody harm
    lines = _Lines(blocks)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    width = 0
    while True:
        lines.start_record()
        offset, line = lines.offset, lines.number
        try:
            fields = next(reader, None)
        except csv.Error as error:
            yield Record(offset, line, [], f"no CSV: {error}", lines.give_back())
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            continue
        except BrokenStream as error:
            yield Record(offset, line, [], str(error), lines.raw())
            return
        if fields is None:
            return
        if lines.damage:
            yield Record(offset, line, [], lines.damage, lines.raw())
        elif fields and len(fields) != (width := width or len(fields)):
            yield Record(offset, line, [], f"{len(fields)} fields, the header has {width}", lines.raw())
        elif fields:
            yield Record(offset, line, fields)


class _Lines:
    """Lines as the csv module wants them; those of the record at hand are kept, and can be read again."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._source = _split(blocks)
        self._again: deque[bytes] = deque()
        self._record: list[bytes] = []
        self.offset = 0  # of the record at hand
        self.number = 1
        self.damage = ""

    def start_record(self) -> None:
        self.offset += sum(map(len, self._record))
        self.number += len(self._record)
        self._record, self.damage = [], ""

    def give_back(self) -> bytes:
        """Keep the first line as the record; the others are read again."""
        self._again.extendleft(reversed(self._record[1:]))
        del self._record[1:]
        return self.raw()

    def raw(self) -> bytes:
        found = b""
        for line in self._record:
            found += line
            if len(found) >= RAW_LIMIT_BYTES:
                break
        return found[:RAW_LIMIT_BYTES]

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._source)
        self._record.append(line)
        start = len(_BOM) if self.offset == 0 and len(self._record) == 1 and line.startswith(_BOM) else 0
        try:
            return line[start:].decode()
        except UnicodeDecodeError as error:
            self.damage = f"not UTF-8 at byte {start + error.start} of line {self.number + len(self._record) - 1}"
            return line[start:].decode("utf-8", "replace")


def _split(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    held = 0
    for block in blocks:
        *whole, last = block.split(b"\n")
        for line in whole:
            yield b"".join([*rest, line, b"\n"])
            rest, held = [], 0
        rest.append(last)
        held += len(last)
        if held > LINE_LIMIT_BYTES:
            raise BrokenStream(f"a line is longer than {LINE_LIMIT_BYTES} bytes; the rest of the file is not read")
    if held:
        yield b"".join(rest)
