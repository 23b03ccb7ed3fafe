"""One bad row costs one row, nothing vanishes, and an operator that breaks its law stops the run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import DataError
from headrace.operators.shapes import READ_ERRORS, VERDICT_COLUMN, Map, MapFunction
from headrace.pipelines.steps import StepCount, apply_keys, apply_step, limit_texts, quarantine_read_errors
from headrace.pipelines.task import BuiltStep
from headrace.storage.contract import QUARANTINE, REJECTS
from tests.pipelines.plain import FirstOfText, Lawless, Raises, Shout, Without, built, documents, step_of

TEXTS = st.lists(st.sampled_from(["fine", "bad", "drop", "also fine"]), max_size=40)


class RaisesOrDrops(Map):
    """Both at once: raises where a text is `bad`, drops where it has `drop` in it."""

    def build(self) -> MapFunction:
        raises, without = Raises().build(), Without(word="drop").build()
        return lambda table: without(raises(table))


def calls_of(step: BuiltStep) -> tuple[BuiltStep, list[int]]:
    """The step, and the sizes of the tables that it is called with."""
    sizes: list[int] = []

    def counting(table: pa.Table) -> pa.Table:
        sizes.append(table.num_rows)
        return step.function(table)

    return BuiltStep(step.task, counting), sizes


@given(st.lists(st.booleans(), max_size=70))
def test_exactly_the_rows_that_raise_are_quarantined(bad: list[bool]) -> None:
    table = documents(*("bad" if b else f"fine {n}" for n, b in enumerate(bad)))
    result = apply_step(built(Raises()), table, "run")
    assert result.kept.equals(table.filter(pa.array([not b for b in bad], pa.bool_())))
    assert result.quarantine["id"].to_pylist() == [f"r{n}" for n, b in enumerate(bad) if b]
    assert result.rejects.num_rows == 0
    assert result.count == StepCount(len(bad), len(bad) - sum(bad), Counter(), sum(bad))


@given(TEXTS)
def test_rows_are_conserved_and_told_apart(texts: list[str]) -> None:
    table = documents(*texts)
    result = apply_step(built(RaisesOrDrops(), 3), table, "run")
    found = {name: getattr(result, name)["id"].to_pylist() for name in ("kept", "rejects", "quarantine")}
    where = {"fine": "kept", "also fine": "kept", "drop": "rejects", "bad": "quarantine"}
    for name, ids in found.items():
        assert ids == [f"r{n}" for n, text in enumerate(texts) if where[text] == name]
    assert result.count.is_conserved
    assert (result.count.rows_in, result.count.kept) == (len(texts), len(found["kept"]))
    assert result.count.dropped == Counter({"without": len(found["rejects"])} if found["rejects"] else {})
    assert result.kept.schema.equals(table.schema)
    assert result.rejects.schema.equals(REJECTS)
    assert result.quarantine.schema.equals(QUARANTINE)


def test_halving_asks_about_few_tables() -> None:
    texts = [f"fine {n}" for n in range(1024)]
    texts[700] = "bad"
    step, sizes = calls_of(built(Raises()))
    assert apply_step(step, documents(*texts), "run").count.quarantined == 1
    assert len(sizes) == 1 + 1 + 2 * 10  # the empty table, the whole, and both halves ten times
    step, sizes = calls_of(built(Raises()))
    apply_step(step, documents(*("fine" for _ in range(1024))), "run")
    assert sizes == [0, 1024]


def test_a_quarantined_row_says_what_happened_and_keeps_its_text() -> None:
    result = apply_step(built(Raises(), 4), documents("fine", "bad"), "run7")
    assert result.quarantine.to_pylist() == [
        {
            "id": "r1",
            "run": "run7",
            "step": 4,
            "op": "tests.pipelines.plain:Raises",
            "error": "ValueError: a text is 'bad'",
            "source_file": "a.txt",
            "source_offset": 1,
            "line": None,
            "text": "bad",
            "raw": None,
        }
    ]


def test_a_reject_says_which_rule_and_what_was_measured() -> None:
    result = apply_step(built(Without(word="drop"), 2), documents("fine", "drop"), "run7")
    assert VERDICT_COLUMN not in result.kept.column_names
    assert result.rejects.to_pylist() == [
        {
            "id": "r1",
            "run": "run7",
            "step": 2,
            "op": "tests.pipelines.plain:Without",
            "rule": "without",
            "value": 1.0,
            "threshold": 0.0,
            "note": None,
            "partner": None,
            "source_file": "a.txt",
            "source_offset": 1,
            "text": "drop",
        }
    ]


def test_rows_without_coordinates_or_text_are_rejected_and_quarantined_too() -> None:
    bare = pa.table({"id": ["a", "b"], "text": pa.array([1, 2])})

    class ById(Map):
        def build(self) -> MapFunction:
            def by_id(table: pa.Table) -> pa.Table:
                if table["id"].to_pylist() == ["a"] or table.num_rows == 2:
                    raise KeyError("a")
                return table

            return by_id

    step = BuiltStep(built(Shout()).task, ById().build())
    row = apply_step(step, bare.drop_columns(["text"]), "run").quarantine.to_pylist()[0]
    assert (row["id"], row["text"], row["source_file"], row["error"]) == ("a", None, None, "KeyError: 'a'")


def test_all_rows_bad_keeps_the_columns_that_the_step_gives() -> None:
    def adds(table: pa.Table) -> pa.Table:
        if table.num_rows:
            raise ValueError("no")
        return table.append_column("new", pa.nulls(0, pa.int8()))

    result = apply_step(BuiltStep(built(Shout()).task, adds), documents("a", "b"), "run")
    assert result.kept.num_rows == 0
    assert result.kept.column_names[-1] == "new"
    assert result.quarantine.num_rows == 2


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("fewer rows", r"steps\[2\] \(tests.pipelines.plain:Lawless\): got 2 rows for 3; a map returns as many rows"),
        ("more rows", r"steps\[2\] .*: got 4 rows for 3; .*mark rows to drop in the column _verdict"),
        ("other order", r"steps\[2\] .*: got other values in the column id; a map keeps its rows in their order"),
        ("ids swapped", r"steps\[2\] .*: got other values in the column id"),
        ("rows doubled", r"steps\[2\] .*: got other values in the column id"),
        ("no table", r"steps\[2\] .*: got list; an operator returns a pyarrow\.Table"),
        ("raises DataError", r"column 'text': got int64; must be text"),
    ],
)
def test_an_operator_that_breaks_its_law_is_no_rows_fault(how: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        apply_step(built(Lawless(how=how), 2), documents("a", "b", "c"), "run")


@pytest.mark.parametrize("error", [SystemExit(4), GeneratorExit(), BaseException("panic")])
def test_an_exit_or_a_panic_costs_its_row_too(error: BaseException) -> None:
    def leaves(table: pa.Table) -> pa.Table:
        if "bad" in table["text"].to_pylist():
            raise error
        return table

    result = apply_step(BuiltStep(built(Shout(), 2).task, leaves), documents("a", "bad", "c"), "run")
    assert result.kept["id"].to_pylist() == ["r0", "r2"]
    assert result.quarantine["error"].to_pylist() == [f"{type(error).__name__}: {error}"]


def test_a_stop_by_hand_is_no_rows_error() -> None:
    def stopped(table: pa.Table) -> pa.Table:
        if table.num_rows:
            raise KeyboardInterrupt
        return table

    with pytest.raises(KeyboardInterrupt):
        apply_step(BuiltStep(built(Shout(), 2).task, stopped), documents("a"), "run")


def test_an_operator_that_raises_on_an_empty_table_is_told_so() -> None:
    step = BuiltStep(built(Shout(), 2).task, lambda table: table.slice(0, table["text"].to_pylist().index("a")))
    with pytest.raises(DataError, match=r"steps\[2\] .*: got ValueError: 'a' is not in list; .*empty table"):
        apply_step(step, documents("b"), "run")


class Keys(FirstOfText):
    """The keys, and an error for `bad`."""

    def build(self) -> MapFunction:
        raises, keys = Raises().build(), super().build()
        return lambda table: keys(raises(table))


@given(st.lists(st.booleans(), max_size=40))
def test_a_row_without_keys_costs_one_row(bad: list[bool]) -> None:
    table = documents(*("bad" if b else f"fine {n}" for n, b in enumerate(bad)))
    result = apply_keys(built(Keys(), 3), table, "run")
    good = [n for n, b in enumerate(bad) if not b]
    assert result.rows.to_pylist() == good
    assert result.keys.equals(FirstOfText().build()(table.take(pa.array(good, pa.int64()))))
    assert result.quarantine["id"].to_pylist() == [f"r{n}" for n, b in enumerate(bad) if b]
    assert set(result.quarantine["step"].to_pylist()) <= {3}
    assert result.count == StepCount(len(bad), len(good), Counter(), len(bad) - len(good))


def rejects_of(num: int) -> pa.Table:
    table = documents(*("drop" for _ in range(num)))
    return apply_step(built(Without(word="drop")), table, "run").rejects


def test_rejects_keep_what_the_policy_says() -> None:
    rejects = rejects_of(2000)
    assert limit_texts(rejects, "text").equals(rejects)
    bare = limit_texts(rejects, "coordinates")
    assert bare["text"].null_count == 2000
    assert bare.drop_columns(["text"]).equals(rejects.drop_columns(["text"]))
    assert bare.schema.equals(REJECTS)
    sample = limit_texts(rejects, "sample")
    chosen = sample.filter(pa.compute.is_valid(sample["text"]))["id"].to_pylist()
    assert 5 <= len(chosen) <= 50
    backwards = limit_texts(rejects.take(list(range(1999, -1, -1))), "sample")
    assert sorted(backwards.filter(pa.compute.is_valid(backwards["text"]))["id"].to_pylist()) == sorted(chosen)
    assert limit_texts(rejects_of(0), "sample").schema.equals(REJECTS)


def test_what_a_reader_could_not_read_goes_to_quarantine() -> None:
    row = {"id": "x", "source_file": "a.txt", "source_offset": 9, "line": 2, "error": "cut", "raw": b"\xff"}
    errors = pa.Table.from_pylist([row], schema=READ_ERRORS)
    found = quarantine_read_errors(errors, built(Shout(), 0).task, "run7")
    assert found.schema.equals(QUARANTINE)
    assert found.to_pylist() == [
        {**row, "run": "run7", "step": 0, "op": "tests.pipelines.plain:Shout", "text": None},
    ]


COUNTS = st.builds(
    StepCount,
    st.integers(0, 99),
    st.integers(0, 99),
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 9)).map(Counter),
    st.integers(0, 99),
)


@given(COUNTS, COUNTS)
def test_counts_add_up_and_survive_plain_values(one: StepCount, other: StepCount) -> None:
    assert StepCount.from_plain(one.to_plain()) == one
    total: Any = StepCount.from_plain(one.to_plain())
    total.add(other)
    assert total.rows_in == one.rows_in + other.rows_in
    assert total.dropped == one.dropped + other.dropped
    assert total.quarantined == one.quarantined + other.quarantined


def test_a_step_has_its_index() -> None:
    assert step_of(Shout(), 5).index == 5
