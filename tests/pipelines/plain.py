"""Small outside operators, and pipelines made of them: plain lines of text in, whatever a test needs done to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pydantic import Field

from headrace.errors import DataError, InputChanged
from headrace.operators.shapes import (
    READ_ERRORS,
    SELECTION_SCHEMA,
    Global,
    InputFile,
    InputPart,
    Map,
    MapFunction,
    ReadBatch,
    Reader,
    ReadFunction,
    Resources,
    Selection,
)
from headrace.operators.verdicts import Verdicts
from headrace.pipelines.plan import schema_to_text
from headrace.pipelines.segments import Step, segments_of, steps_of
from headrace.pipelines.spec import Pipeline
from headrace.pipelines.task import BuiltStep, SegmentTask, StepTask
from headrace.storage.contract import DOCUMENT


class Lines(Reader):
    """A row for each line of the .txt files of a folder; a line `?broken` is a read error; a whole file is one part."""

    root: str
    dies_on: str = ""
    raises_on: str = ""

    def files(self) -> list[InputFile]:
        paths = sorted(Path(self.root).glob("*.txt"))
        return [InputFile(p.name, str(p.parent), p.stat().st_size, str(p.stat().st_mtime_ns)) for p in paths]

    def schema(self, files: list[InputFile]) -> pa.Schema:  # type: ignore[override]  # pydantic's is deprecated
        return DOCUMENT

    def parts(self, file: InputFile, part_bytes: int) -> list[InputPart]:
        return [InputPart(file, 0, file.size_bytes, file.size_bytes)]

    def build(self) -> ReadFunction:
        def read(part: InputPart, schema: pa.Schema) -> Iterator[ReadBatch]:
            path = Path(part.file.root) / part.file.path
            if str(path.stat().st_mtime_ns) != part.file.mark:
                raise InputChanged(part.file.path, "another time", "must be the planned file")
            lines = path.read_text("utf-8").splitlines()
            if self.dies_on and self.dies_on in lines:
                os._exit(9)
            if self.raises_on and self.raises_on in lines:
                raise RuntimeError("the reader has a bug")
            rows, errors = [], []
            for number, line in enumerate(lines):
                place = {
                    "id": f"{path.stem}-{number}",
                    "source_file": part.file.path,
                    "source_offset": number,
                }
                if line == "?broken":
                    errors.append({**place, "line": number + 1, "error": "broken", "raw": line.encode()})
                else:
                    rows.append({**place, "text": line, "source": "test"})
            yield ReadBatch(pa.Table.from_pylist(rows, schema=schema), pa.Table.from_pylist(errors, schema=READ_ERRORS))

        return read


class Without(Map):
    """A filter: rows whose text has `word` in it are dropped by the rule `without`."""

    word: str

    def build(self) -> MapFunction:
        def without(table: pa.Table) -> pa.Table:
            verdicts = Verdicts(table.num_rows)
            found = pc.match_substring(table["text"], self.word).to_numpy()
            verdicts.drop("without", found.astype(bool), found.astype("int64"), 0)
            return verdicts.add_to(table)

        return without


class Shout(Map):
    """Text in upper case, `mark` behind it."""

    mark: str = "!"

    def build(self) -> MapFunction:
        def shout(table: pa.Table) -> pa.Table:
            texts = pa.array(
                [None if t is None else t.upper() + self.mark for t in table["text"].to_pylist()], pa.large_string()
            )
            return table.set_column(table.column_names.index("text"), "text", texts)

        return shout


class ShoutOnGpu(Shout):
    """The same in another resource shape."""

    resources: ClassVar[Resources] = Resources(num_cpus=1, num_gpus=1)


class Raises(Map):
    """Raises where a text is `word`, whatever else is in the table."""

    word: str = "bad"

    def build(self) -> MapFunction:
        def raises(table: pa.Table) -> pa.Table:
            if self.word in table["text"].to_pylist():
                raise ValueError(f"a text is {self.word!r}")
            return table

        return raises


class Dies(Map):
    """Ends the process where a text is `word`."""

    word: str = "die"

    def build(self) -> MapFunction:
        def dies(table: pa.Table) -> pa.Table:
            if self.word in table["text"].to_pylist():
                os._exit(7)
            return table

        return dies


class Lawless(Map):
    """Breaks the law of its shape in the way of `how`, for tables with rows."""

    how: str

    def build(self) -> MapFunction:
        def lawless(table: pa.Table) -> Any:
            if self.how == "raises DataError":
                raise DataError("column 'text'", "int64", "must be text")
            if not table.num_rows:
                return table
            broken = {
                "fewer rows": table.slice(1),
                "more rows": pa.concat_tables([table, table.slice(0, 1)]),
                "no table": table.to_pylist(),
                "other order": table.take(list(range(table.num_rows))[::-1]),
                "ids swapped": table.set_column(0, table.schema.field(0), [table["id"].to_pylist()[::-1]]),
                "rows doubled": table.take([0, *range(table.num_rows - 1)]),
            }
            return broken[self.how]

        return lawless


class AddColumn(Map):
    """One more column, `name`, of the type `kind`."""

    name: str
    kind: str = "int64"

    def build(self) -> MapFunction:
        return lambda table: table.append_column(self.name, pa.nulls(table.num_rows, pa.type_for_alias(self.kind)))


class FirstOfText(Global):
    """Of the rows with one text the one with the smallest id stays."""

    min_length: int = Field(0, ge=0)

    def build(self) -> MapFunction:
        def keys(table: pa.Table) -> pa.Table:
            hashes = [xxhash.xxh3_64_digest(text.encode()) for text in table["text"].to_pylist()]
            return pa.table({"key": pa.array(hashes, pa.binary(8))})

        return keys

    def select(self, keys: pa.Table) -> Selection:
        pairs = list(zip(keys["key"].to_pylist(), keys["id"].to_pylist(), strict=True))
        first: dict[bytes, str] = {}
        for key, id in pairs:
            first[key] = min(first.get(key, id), id)
        dropped = [
            {"row": row, "rule": "repeated", "value": 1.0, "partner": first[key]}
            for row, (key, id) in enumerate(pairs)
            if first[key] != id
        ]
        # Last row first: the engine must not rely on their order.
        return Selection(pa.Table.from_pylist(dropped[::-1], schema=SELECTION_SCHEMA))


def write_lines(folder: Path, **files: Sequence[str]) -> Path:
    """`name.txt` for each keyword."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def lines_pipeline(folder: Path, *steps: Any, **given: Any) -> Pipeline:
    """The reader of `folder` and these steps; units of 1 kB, so that small files make several."""
    reader = given.pop("reader", None) or Lines(root=str(folder))
    return Pipeline(**{"pipeline": "lines", "output": "out", "unit_bytes": 1024, **given}, steps=(reader, *steps))


def documents(*texts: str) -> pa.Table:
    """Rows as a reader gives them; the id is a letter and the position."""
    rows = [
        {"id": f"r{n}", "text": text, "source": "test", "source_file": "a.txt", "source_offset": n}
        for n, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENT)


def step_of(operator: Any, index: int = 1) -> Step:
    """The operator as a step of some pipeline."""
    step = steps_of(Pipeline(pipeline="p", output="o", steps=(Lines(root="."), operator)))[1]
    return Step(index, step.op, step.digest, step.operator)


def segment_task(*steps: Any, reader: Reader | None = None, **given: Any) -> SegmentTask:
    """The task of a pipeline's only segment; its lake does not exist."""
    (segment,) = segments_of(steps_of(lines_pipeline(Path("in"), *steps, reader=reader)), "i")
    schema = schema_to_text(DOCUMENT)
    places = {"lake": "lake", "run": "r", "work": "w", "previous": "", "output": "out", "rejects": "text"}
    places |= {"input_schema": schema, "output_schema": schema}
    return SegmentTask.of(segment, **{**places, "search_path": (), **given})


def built(operator: Any, index: int = 1) -> BuiltStep:
    """The step with its function."""
    return BuiltStep(StepTask.of(step_of(operator, index)), operator.build())
