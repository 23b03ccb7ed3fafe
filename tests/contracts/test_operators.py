"""The laws that every operator keeps: the folder is walked, so a new operator is held to them by being there."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pickle
import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from pydantic import ValidationError

from headrace.errors import DataError, InputChanged, SpecError
from headrace.operators.resolve import camel_case, names, operator_class, operator_name
from headrace.operators.shapes import (
    READ_ERRORS,
    SELECTION_SCHEMA,
    VERDICT,
    VERDICT_COLUMN,
    Call,
    Global,
    Map,
    Operator,
    Reader,
)
from tests.contracts._repository import ROOT, imports
from tests.operators.layouts import EDGE_TEXTS, fuzz_texts, text_table


def _parquet(texts: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [f"p{i}" for i in range(len(texts))], "text": texts}), sink, row_group_size=7)
    return bytes(sink.getvalue())


# Parameters of the operators that need some; the others are taken by default.  Readers get `root` from their test.
EXAMPLES: dict[str, dict[str, Any]] = {
    "text.language": {"keep": ["en", "de"], "min_score": 0.4},
    "text.length": {"min_words": 2, "max_chars": 50},
}
# What lies in a reader's folder.
INPUTS: dict[str, dict[str, bytes]] = {
    "read.csv": {
        "a.csv": b"text,number\n" + b"".join(b'"row %d,\nsecond line",%d\n' % (i, i) for i in range(30)),
        "b/c.csv": b"text,number\nplain,7",
    },
    "read.jsonl": {
        "a.jsonl": b"".join(json.dumps({"text": f"row {i} \u00e9"}).encode() + b"\n" for i in range(50)),
        "b/c.jsonl": b'{"text": "in a folder"}\nno json\n\n{"text": ""}',
    },
    "read.parquet": {
        "a.parquet": _parquet([f"row {i} \u00e9" for i in range(30)]),
        "b/c.parquet": _parquet([]),
    },
    "read.text": {"a.txt": "Ein Wort\r\n\u00e9".encode(), "b/empty.md": b"", "b/wrong.txt": b"\xff\xfe\xfd"},
}
SHAPES = (Reader, Map, Call, Global)
ALL = names()
TEXTS = (*EDGE_TEXTS, *fuzz_texts(60, seed=20))


def _of(shape: type[Operator]) -> list[str]:
    return [name for name in ALL if issubclass(operator_class(name), shape)]


def _example(name: str) -> Operator:
    fields = EXAMPLES.get(name, {}) | ({"root": "somewhere"} if name in _of(Reader) else {})
    try:
        return operator_class(name)(**fields)
    except ValidationError as error:
        pytest.fail(f"{name} has no defaults: give its parameters in EXAMPLES ({error})")


def _path(name: str) -> Path:
    return Path(inspect.getfile(operator_class(name)))


def _doc(name: str) -> str:
    return inspect.getdoc(operator_class(name)) or ""


def test_there_are_operators_of_three_shapes() -> None:
    """Else the walk is broken, and all laws hold of nothing."""
    assert all(_of(shape) for shape in (Reader, Map, Global))


# ------------------------------------------------------------------------------------------ every operator


@pytest.mark.parametrize("name", ALL)
def test_the_module_defines_one_operator_named_like_it(name: str) -> None:
    cls = operator_class(name)
    module = importlib.import_module(cls.__module__)
    own = [
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, Operator) and found.__module__ == module.__name__
    ]
    assert own == [cls]
    assert cls.__name__ == camel_case(name)
    assert sum(issubclass(cls, shape) for shape in SHAPES) == 1
    assert not inspect.isabstract(cls)
    assert operator_name(cls) == name


@pytest.mark.parametrize("name", ALL)
def test_the_docstring_has_its_blocks(name: str) -> None:
    doc = _doc(name)
    first, _, rest = doc.partition("\n")
    assert re.fullmatch(r"[A-Z].*[.:].*", first), "the first line says what a row experiences"
    blocks = [
        re.search(rf"^{block}", rest, re.MULTILINE) for block in ("Columns$", "Cost: ", "Raises: ", "Source: ", ">>> ")
    ]
    assert None not in blocks
    at = [block.start() for block in blocks if block]
    assert at == sorted(at), "the blocks come in the template's order"
    columns = rest[at[0] : at[1]]
    assert all(re.search(rf"^    {word} +\S", columns, re.MULTILINE) for word in ("reads", "writes", "rows"))


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_is_described(name: str) -> None:
    fields = operator_class(name).model_fields
    assert [field for field, told in fields.items() if not told.description] == []


@pytest.mark.parametrize("name", ALL)
def test_it_has_a_test(name: str) -> None:
    inside = _path(name).relative_to(ROOT / "src" / "headrace").with_suffix("")
    assert (ROOT / "tests" / inside.parent / f"test_{inside.name}.py").is_file()


@pytest.mark.parametrize("name", ALL)
def test_it_survives_json_yaml_and_pickle(name: str) -> None:
    operator = _example(name)
    cls = type(operator)
    dumped = operator.model_dump(mode="json")
    assert cls(**json.loads(json.dumps(dumped))) == operator
    assert cls(**yaml.safe_load(yaml.safe_dump(dumped))) == operator
    assert pickle.loads(pickle.dumps(operator)) == operator


@pytest.mark.parametrize("name", ALL)
def test_unknown_parameters_are_errors_and_known_ones_are_frozen(name: str) -> None:
    operator = _example(name)
    with pytest.raises(ValidationError, match="no_such_parameter"):
        type(operator)(**operator.model_dump() | {"no_such_parameter": 1})
    with pytest.raises(ValidationError, match="frozen"):
        setattr(operator, next(iter(type(operator).model_fields)), None)


@pytest.mark.parametrize("name", ALL)
def test_no_clock_and_no_randomness(name: str) -> None:
    """Results depend on rows and parameters; a seed is a parameter."""
    tree = ast.parse(_path(name).read_text("utf-8"))
    imported = {module.partition(".")[0] for _, module in imports(tree)}
    assert imported & {"random", "time", "datetime", "uuid", "secrets"} == set()


# ----------------------------------------------------------------------------------- maps, and keys of globals


def _wire(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _functions() -> list[str]:
    return [*_of(Map), *_of(Global)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("name", _functions())
def test_many_rows_at_once_are_many_batches_of_one(name: str, kind: pa.DataType) -> None:
    operator: Any = _example(name)
    table = text_table(TEXTS, kind)
    before = _wire(table)
    function = operator.build()
    whole = function(table)
    assert _wire(table) == before, "an operator never changes its input"
    assert whole.num_rows == table.num_rows
    whole.validate(full=True)
    singles = [function(table.slice(i, 1)) for i in range(table.num_rows)]
    assert {single.schema for single in singles} == {whole.schema}
    assert pa.concat_tables(singles).equals(whole)
    again = pickle.loads(pickle.dumps(operator)).build()(table)
    assert again.equals(whole), "built somewhere else, it does the same"
    with ThreadPoolExecutor(4) as pool:
        assert all(result.equals(whole) for result in pool.map(function, [table] * 8)), "threads may share it"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("name", _functions())
def test_nothing_in_gives_the_same_schema(name: str, kind: pa.DataType) -> None:
    function = _example(name).build()  # type: ignore[attr-defined]  # every shape but the base has it
    whole = function(text_table(TEXTS, kind))
    for table in (text_table([], kind), text_table(TEXTS, kind).slice(3, 0)):
        nothing = function(table)
        assert nothing.num_rows == 0
        assert nothing.schema.equals(whole.schema, check_metadata=True)
    no_chunks = function(text_table([], kind).schema.empty_table())
    assert no_chunks.schema.equals(whole.schema, check_metadata=True)


@pytest.mark.parametrize("name", _functions())
def test_a_column_that_is_missing_or_no_text_is_named(name: str) -> None:
    function = _example(name).build()  # type: ignore[attr-defined]
    for table in (pa.table({"id": ["a"]}), pa.table({"id": ["a"], "text": [1]})):
        with pytest.raises(DataError, match="text") as caught:
            function(table)
        assert caught.value.place == name


@pytest.mark.parametrize("name", _of(Map))
def test_a_map_keeps_rows_and_columns(name: str) -> None:
    table = text_table(TEXTS).append_column("other", pa.array([[i] for i in range(len(TEXTS))]))
    result = _example(name).build()(table)  # type: ignore[attr-defined]
    assert result.schema.names[: table.num_columns] == table.schema.names
    assert result.select(["id", "other"]).equals(table.select(["id", "other"]))
    for added in result.schema.names[table.num_columns :]:
        if added != VERDICT_COLUMN:
            assert added in _doc(name), f"the docstring does not tell of column {added!r}"


@pytest.mark.parametrize("name", _of(Map))
def test_verdicts_tell_known_rules(name: str) -> None:
    result = _example(name).build()(text_table(TEXTS))  # type: ignore[attr-defined]
    if VERDICT_COLUMN not in result.schema.names:
        return
    assert "verdict" in _doc(name)
    assert result.schema.field(VERDICT_COLUMN).type == VERDICT
    dropped = [verdict for verdict in result[VERDICT_COLUMN].to_pylist() if verdict]
    assert 0 < len(dropped) <= len(TEXTS)
    rules = {verdict["rule"] for verdict in dropped}
    told = set(re.findall(r'"(\w+)"', _doc(name))) | set(operator_class(name).model_fields)
    assert rules <= told, "a rule is a parameter's name, or stands in the docstring"
    assert result[VERDICT_COLUMN][TEXTS.index(None)].as_py() is not None, "a filter has no opinion on null texts"


# ------------------------------------------------------------------------------------------------ globals


@pytest.mark.parametrize("name", _of(Global))
def test_a_selection_does_not_depend_on_order(name: str) -> None:
    operator: Any = _example(name)
    choose = random.Random(21)
    table = text_table([*TEXTS, *choose.choices(TEXTS, k=200)])
    keys = operator.build()(table)
    assert "id" not in keys.schema.names
    keys = keys.append_column("id", table["id"])
    before = _wire(keys)
    outcomes = []
    for order in (range(keys.num_rows), choose.sample(range(keys.num_rows), keys.num_rows)):
        arranged = keys.take(pa.array(order))
        selection = operator.select(arranged)
        selection.dropped.validate(full=True)
        assert selection.dropped.schema == SELECTION_SCHEMA
        rows = selection.dropped["row"]
        assert pc.count_distinct(rows).as_py() == len(rows) > 0
        dropped = arranged["id"].take(rows).to_pylist()
        assert not {partner for partner in selection.dropped["partner"].to_pylist() if partner} & set(dropped)
        facts = selection.dropped.drop_columns("row").to_pylist()
        outcomes.append(({i: str(fact) for i, fact in zip(dropped, facts, strict=True)}, selection.counts))
    assert outcomes[0] == outcomes[1]
    assert _wire(keys) == before
    nothing = operator.select(keys.slice(0, 0))
    assert nothing.dropped.schema == SELECTION_SCHEMA
    assert nothing.dropped.num_rows == 0


# ------------------------------------------------------------------------------------------------ readers


def _reader(name: str, root: Path) -> Reader:
    assert name in INPUTS, f"give {name} some files in INPUTS"
    for path, content in INPUTS[name].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    reader = operator_class(name)(**EXAMPLES.get(name, {}) | {"root": str(root)})
    assert isinstance(reader, Reader)
    return reader


def _read(reader: Reader, part_bytes: int) -> tuple[pa.Table, pa.Table]:
    files = reader.files()
    schema = reader.schema(files)
    read = pickle.loads(pickle.dumps(reader)).build()
    rows, errors = [schema.empty_table()], [READ_ERRORS.empty_table()]
    for file in files:
        parts = reader.parts(file, part_bytes)
        assert [part.file for part in parts] == [file] * len(parts)
        assert parts[0].start == 0
        assert [part.stop for part in parts[:-1]] == [part.start for part in parts[1:]], "parts tile the file"
        assert parts[-1].stop == reader.parts(file, 1 << 40)[0].stop
        for part in parts:
            for batch in read(part, schema):
                assert batch.rows.schema == schema
                assert batch.errors.schema == READ_ERRORS
                rows.append(batch.rows)
                errors.append(batch.errors)
    return pa.concat_tables(rows), pa.concat_tables(errors)


@pytest.mark.parametrize("name", _of(Reader))
def test_a_reader_reads_the_same_rows_from_parts_of_any_size(name: str, tmp_path: Path) -> None:
    reader = _reader(name, tmp_path)
    files = [file.path for file in reader.files()]
    assert files == sorted(INPUTS[name])
    rows, errors = _read(reader, 1 << 40)
    assert rows.num_rows > 0
    assert {"id", "source_file", "source_offset"} <= set(rows.schema.names)
    assert pc.count_distinct(rows["id"]).as_py() == rows.num_rows
    assert set(rows["source_file"].to_pylist()) <= set(files)
    for part_bytes in (1, 7, 64):
        small_rows, small_errors = _read(reader, part_bytes)
        assert small_rows.equals(rows)
        assert small_errors.equals(errors)


@pytest.mark.parametrize("name", _of(Reader))
def test_a_reader_of_nothing_says_so(name: str, tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "not_there"):
        with pytest.raises(SpecError):
            operator_class(name)(**EXAMPLES.get(name, {}) | {"root": str(root)}).files()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", _of(Reader))
def test_a_reader_refuses_a_changed_file(name: str, tmp_path: Path) -> None:
    reader = _reader(name, tmp_path)
    files = reader.files()
    schema = reader.schema(files)
    (part, *_) = reader.parts(files[0], 1 << 40)
    (tmp_path / files[0].path).write_bytes(INPUTS[name][files[0].path] + b" ")
    with pytest.raises(InputChanged, match=re.escape(files[0].path)):
        list(reader.build()(part, schema))
