from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.errors import SpecError
from headrace.operators.read._layout import ANY_KEY, JSON, Column, Layout, Roles, plan_schema

LARGE = pa.large_string()
TEXT = {"text": Column(LARGE)}


def _plan(columns: dict[str, Column], roles: Roles | None = None, extra: bool = False) -> pa.Schema:
    return plan_schema(columns, roles or Roles("auto", "text", None), "read.test", extra)


def test_every_schema_starts_alike() -> None:
    schema = _plan({"lang": Column(LARGE), **TEXT})
    assert schema.names == ["id", "text", "source", "source_file", "source_offset", "lang"]
    assert [str(type_) for type_ in schema.types[:5]] == ["string", "large_string", "string", "string", "int64"]
    assert not schema.field("id").nullable


def test_extra_comes_before_the_inputs_columns() -> None:
    assert _plan({**TEXT, "a": Column(pa.int64())}, extra=True).names[5:] == ["extra", "a"]


def test_columns_that_collide_are_renamed_and_found_again() -> None:
    columns = {**TEXT, "source_file": Column(LARGE), "extra": Column(pa.int64()), "source_file_": Column(pa.bool_())}
    layout = Layout.of(_plan(columns, extra=True))
    assert {other.column: other.field.name for other in layout.others} == {
        "source_file": "source_file__",
        "extra": "extra_",
        "source_file_": "source_file_",
    }
    assert layout.has_extra


def test_names_that_lance_refuses_are_renamed() -> None:
    names = ["a.b", "a_b", "", "_rowid", "_verdict", "_"]
    schema = _plan({**TEXT, **{name: Column(pa.int64()) for name in names}})
    found = {other.column: other.field.name for other in Layout.of(schema).others}
    assert found == {"a.b": "a_b_", "a_b": "a_b", "": "__", "_rowid": "_rowid_", "_verdict": "_verdict_", "_": "_"}


@pytest.mark.parametrize(
    ("column", "form"), [(Column(LARGE), "string"), (Column(pa.uint64()), "integer"), (Column(LARGE, ANY_KEY), "any")]
)
def test_an_own_id_is_used_where_it_can_be_one(column: Column, form: str) -> None:
    layout = Layout.of(_plan({"id": column, **TEXT}))
    assert (layout.id_column, layout.id_form, layout.others) == ("id", form, ())


@pytest.mark.parametrize("column", [Column(pa.float64()), Column(LARGE, JSON), Column(pa.list_(LARGE))])
def test_an_own_id_that_is_none_becomes_a_column(column: Column) -> None:
    layout = Layout.of(_plan({"id": column, **TEXT}))
    assert layout.id_column is None
    assert [(other.column, other.field.name) for other in layout.others] == [("id", "id_")]


def test_a_named_id_leaves_the_other_as_a_column() -> None:
    layout = Layout.of(_plan({"id": Column(LARGE), "key": Column(pa.int64()), **TEXT}, Roles("key", "text", None)))
    assert layout.id_column == "key"
    assert layout.schema.names[5:] == ["id_"]
    assert Layout.of(_plan({"id": Column(LARGE), **TEXT}, Roles(None, "text", None))).id_column is None


def test_another_text_column_leaves_text_as_a_column() -> None:
    layout = Layout.of(_plan({**TEXT, "body": Column(LARGE)}, Roles("auto", "body", None)))
    assert (layout.text_column, layout.schema.names[5:]) == ("body", ["text_"])


def test_the_own_source_is_used_unless_one_is_given_or_it_is_no_string() -> None:
    columns = {**TEXT, "source": Column(LARGE)}
    assert Layout.of(_plan(columns)).source_column == "source"
    assert _plan(columns, Roles("auto", "text", "mine")).names[5:] == ["source_"]
    assert _plan({**TEXT, "source": Column(pa.int64())}).names[5:] == ["source_"]


def test_the_origin_is_kept_where_asked_for() -> None:
    columns = {**TEXT, "source_file": Column(LARGE), "source_offset": Column(pa.int64())}
    asked = Roles("auto", "text", None, origin=True)
    assert Layout.of(_plan(columns, asked)).has_origin
    assert len(_plan(columns, asked)) == 5
    columns["source_offset"] = Column(pa.float64())
    assert _plan(columns, asked).names[5:] == ["source_file_", "source_offset_"]


def test_json_columns_are_strings_with_a_note() -> None:
    (other,) = Layout.of(_plan({**TEXT, "meta": Column(pa.int64(), JSON)})).others
    assert (other.is_json, other.field.type) == (True, LARGE)


def test_rows_without_text_have_no_such_column() -> None:
    schema = _plan({"tokens": Column(pa.list_(pa.int32()))}, Roles("auto", None, None))
    assert schema.names == ["id", "source", "source_file", "source_offset", "tokens"]
    assert Layout.of(schema).text_column is None


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        (
            Roles("auto", "content", None),
            r"text_column: got 'content'; the input's columns are body, n; set text_column",
        ),
        (Roles("auto", "n", None), r"text_column: got 'n' \(double\); the text must be a string"),
        (Roles("uid", "body", None), r"id_column: got 'uid'; the input's columns are body, n"),
        (Roles("n", "body", None), r"id_column: got 'n' \(double\); an id must be a string or an integer"),
    ],
)
def test_a_named_column_that_is_no_use_is_told(roles: Roles, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        _plan({"body": Column(LARGE), "n": Column(pa.float64())}, roles)


def test_the_layout_survives_the_plan_on_disk() -> None:
    schema = _plan({"id": Column(LARGE, ANY_KEY), "a.b": Column(LARGE, JSON), **TEXT}, extra=True)
    again = pa.ipc.read_schema(pa.py_buffer(schema.serialize().to_pybytes()))
    assert Layout.of(again) == Layout.of(schema)
