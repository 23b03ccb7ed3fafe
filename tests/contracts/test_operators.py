"""The laws that every operator keeps: the folder is walked, so a new operator is held to them by being there.

Those of readers alone are in `test_readers.py`.
"""

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
import pytest
import yaml
from pydantic import ValidationError

from headrace.errors import DataError
from headrace.operators.resolve import camel_case, names, operator_class, operator_name
from headrace.operators.shapes import (
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

# Parameters of the operators that need some; the others are taken by default.
# What readers read is in `test_readers.py`.
EXAMPLES: dict[str, dict[str, Any]] = {
    "read.lance": {"dataset": "notes@3"},
    "text.language": {"keep": ["en", "de"], "min_score": 0.4},
    "text.length": {"min_words": 2, "max_chars": 50},
}
SHAPES = (Reader, Map, Call, Global)
ALL = names()
TEXTS = (*EDGE_TEXTS, *fuzz_texts(60, seed=20))


def _of(shape: type[Operator]) -> list[str]:
    return [name for name in ALL if issubclass(operator_class(name), shape)]


def _example(name: str) -> Operator:
    cls = operator_class(name)
    fields = EXAMPLES.get(name, {}) | ({"root": "somewhere"} if "root" in cls.model_fields else {})
    try:
        return cls(**fields)
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
