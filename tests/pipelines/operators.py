"""Operators that misbehave on request, and one that stretches a run so that it can be killed in the middle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import ClassVar, Literal

import pyarrow as pa
from pydantic import Field

from headrace.operators.dedup.exact import Exact
from headrace.operators.read.jsonl import Jsonl
from headrace.operators.shapes import InputPart, Map, MapFunction, ReadBatch, ReadFunction, Resources
from tests.pipelines.corpus import DEADLY, REFUSED


class Refuse(Map):
    """Raises on texts that hold a word."""

    word: str = REFUSED

    def build(self) -> MapFunction:
        def refuse(table: pa.Table) -> pa.Table:
            for text in table["text"].to_pylist():
                if self.word in text:
                    raise ValueError(f"refused {text[:20]}")
            return table

        return refuse


class Slow(Map):
    """Takes its time for every row."""

    seconds_per_row: float = Field(0.001, ge=0)

    def build(self) -> MapFunction:
        def slow(table: pa.Table) -> pa.Table:
            time.sleep(self.seconds_per_row * table.num_rows)
            return table

        return slow


class SlowSmall(Slow):
    """The same in a stage of its own, since it asks for less of a CPU."""

    resources: ClassVar[Resources] = Resources(num_cpus=0.5)


class Deadly(Map):
    """Kills its process on texts that hold a word, as a crash in native code would."""

    word: str = DEADLY

    def build(self) -> MapFunction:
        def deadly(table: pa.Table) -> pa.Table:
            if any(self.word in text for text in table["text"].to_pylist()):
                os.kill(os.getpid(), signal.SIGKILL)
            return table

        return deadly


class DeadlySmall(Deadly):
    """The same in a stage of its own."""

    resources: ClassVar[Resources] = Resources(num_cpus=0.5)


class DeadlyReader(Jsonl):
    """Kills its process when it opens a file of this name."""

    deadly: str = "part-003.jsonl"

    def build(self) -> ReadFunction:
        read = super().build()

        def deadly(part: InputPart, schema: pa.Schema) -> Iterator[ReadBatch]:
            if part.file.path == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return read(part, schema)

        return deadly


class BadKeys(Exact):
    """A global step whose key function fails on texts that hold a word: raises, or kills its process."""

    word: str = DEADLY
    how: Literal["raise", "kill"] = "raise"

    def build(self) -> MapFunction:
        keys = super().build()

        def bad(table: pa.Table) -> pa.Table:
            for text in table["text"].to_pylist():
                if self.word in text:
                    if self.how == "kill":
                        os.kill(os.getpid(), signal.SIGKILL)
                    raise ValueError(f"no key for {text[:20]}")
            return keys(table)

        return bad
