"""What a step's digest covers: its module, what that imports from its own place, its parameters; and nothing else."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SpecError
from headrace.operators.text.length import Length
from headrace.pipelines import digest
from headrace.pipelines.digest import hash_json, hash_text, source_digest, step_digest

Files = Callable[..., Path]
OPERATOR = """
import json
from {helper} import limit
from headrace.operators.shapes import Map

class Own(Map):
    word: str = "a"

    def build(self):
        def own(table):
            import {late}
            return table
        return own
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """Write modules into an importable folder, by path; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            path = tmp_path / (name.replace("__in__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        importlib.invalidate_caches()
        return tmp_path

    yield write
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_a_lone_module_counts_with_what_it_imports_from_its_folder(files: Files) -> None:
    files(
        dg_op=OPERATOR.format(helper="dg_helper", late="dg_late"),
        dg_helper="from dg_deeper import x\nlimit = 3\n",
        dg_deeper="x = 1\n",
        dg_late="y = 1\n",
        dg_unrelated="z = 1\n",
        dg_mention="# import dg_op\n",
    )
    before = source_digest("dg_op")
    assert source_digest("dg_op") == before
    files(dg_unrelated="z = 2\n", dg_mention="# import dg_op, now\n")
    assert source_digest("dg_op") == before
    seen = {before}
    for name, text in [
        ("dg_helper", "from dg_deeper import x\nlimit = 4\n"),
        ("dg_deeper", "x = 1  # a comment\n"),
        ("dg_late", "y = 2\n"),
        ("dg_op", "# a comment\n" + OPERATOR.format(helper="dg_helper", late="dg_late")),
    ]:
        files(**{name: text})
        seen.add(source_digest("dg_op"))
    assert len(seen) == 5


def test_a_package_counts_as_far_as_it_is_imported(files: Files) -> None:
    files(
        dg_pkg__in____init__="",
        dg_pkg__in__op="from . import near\nfrom .sub import deep\nfrom dg_pkg.sub.far import value\n",
        dg_pkg__in__near="a = 1\n",
        dg_pkg__in__other="a = 1\n",
        dg_pkg__in__sub__in____init__="",
        dg_pkg__in__sub__in__deep="from .. import above\n",
        dg_pkg__in__sub__in__far="value = 1\n",
        dg_pkg__in__above="a = 1\n",
        dg_outside="a = 1\n",
    )
    before = source_digest("dg_pkg.op")
    files(dg_pkg__in__other="a = 2\n", dg_outside="a = 2\n")
    assert source_digest("dg_pkg.op") == before
    seen = {before}
    for name in ("near", "sub__in__deep", "sub__in__far", "above", "sub__in____init__"):
        files(**{f"dg_pkg__in__{name}": "a = 3\n" if name != "sub__in__deep" else "from .. import above  # 2\n"})
        seen.add(source_digest("dg_pkg.op"))
    assert len(seen) == 6


def test_code_that_was_edited_after_this_process_used_it_is_refused(files: Files) -> None:
    """Rows would come from the old text and be named by the new one."""
    text = OPERATOR.format(helper="dg_helper", late="dg_helper")
    files(dg_live=text, dg_helper="limit = 3\n")
    module = importlib.import_module("dg_live")
    before = step_digest(module.Own())
    assert step_digest(module.Own()) == before
    assert step_digest(module.Own(word="b")) != before
    files(dg_helper="limit = 44\n")
    with pytest.raises(SpecError, match=r"module dg_helper: got a file that was edited .*reload\(dg_helper\)"):
        step_digest(module.Own())
    importlib.reload(sys.modules["dg_helper"])
    assert step_digest(module.Own()) != before


def test_an_import_cycle_ends(files: Files) -> None:
    files(dg_one="import dg_two\n", dg_two="import dg_one\n")
    assert source_digest("dg_one") == source_digest("dg_two")  # the same two texts


def test_installed_packages_do_not_count(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment often lies inside the folder of the user's own modules."""
    folder = files(dg_op="import dg_installed\n", venv__in__site__in__dg_installed="a = 1\n")
    site = folder / "venv" / "site"
    monkeypatch.syspath_prepend(str(site))
    counted = source_digest("dg_op")
    (site / "dg_installed.py").write_text("a = 2\n", "utf-8")
    assert source_digest("dg_op") != counted
    monkeypatch.setattr(digest, "_INSTALLED", (*digest._INSTALLED, site))
    left_out = source_digest("dg_op")
    (site / "dg_installed.py").write_text("a = 3\n", "utf-8")
    assert source_digest("dg_op") == left_out
    # A lone installed module is itself alone: its neighbours are all other packages.
    (site / "dg_single.py").write_text("import dg_installed\n", "utf-8")
    importlib.invalidate_caches()
    alone = source_digest("dg_single")
    (site / "dg_installed.py").write_text("a = 4\n", "utf-8")
    assert source_digest("dg_single") == alone


def test_a_helper_that_this_python_cannot_parse_counts_by_its_text(files: Files) -> None:
    files(dg_op="import dg_newer\n", dg_newer="match = = 1\n")
    before = source_digest("dg_op")
    files(dg_newer="match = = 2\n")
    assert source_digest("dg_op") != before


def test_our_operators_count_with_their_private_kernels() -> None:
    """Without editing the package: the kernel's file is among the sources that are hashed."""
    sources = digest._sources("headrace.operators.text.length")
    assert "headrace.operators._kernels.word_count" in sources
    assert "headrace.operators.verdicts" in sources
    assert all(name.startswith(("headrace.operators", "headrace.synthesis")) for name in sources)
    assert "headrace.operators.text.normalize" not in sources


def test_the_text_of_a_private_kernel_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = source_digest("headrace.operators.text.length")
    find = digest._origin
    changed = tmp_path / "word_count.py"

    def edited(module: str) -> Path | None:
        path = find(module)
        if module != "headrace.operators._kernels.word_count":
            return path
        assert path is not None
        changed.write_text(path.read_text("utf-8") + "# faster\n", "utf-8")
        return changed

    monkeypatch.setattr(digest, "_origin", edited)
    assert source_digest("headrace.operators.text.length") != before


def test_parameters_count() -> None:
    assert step_digest(Length(min_words=1)) == step_digest(Length(min_words=1))
    assert len({step_digest(o) for o in (Length(min_words=1), Length(min_words=2), Length(max_words=1))}) == 3


def test_a_module_without_source_is_refused() -> None:
    for module in ("dg_nowhere", "sys", "time"):
        with pytest.raises(SpecError, match="an operator must be importable from a file"):
            source_digest(module)


def test_the_digest_does_not_depend_on_the_place(files: Files, tmp_path: Path) -> None:
    """Two checkouts of one repository share their work."""
    files(dg_here="a = 1\n")
    first = source_digest("dg_here")
    (tmp_path / "moved").mkdir()
    os.rename(tmp_path / "dg_here.py", tmp_path / "moved" / "dg_here.py")
    sys.path.insert(0, str(tmp_path / "moved"))
    try:
        importlib.invalidate_caches()
        assert source_digest("dg_here") == first
    finally:
        sys.path.remove(str(tmp_path / "moved"))


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_texts_have_borders(one: list[str], other: list[str]) -> None:
    assert (hash_text(*one) == hash_text(*other)) == (one == other)


def test_json_has_no_order_of_keys() -> None:
    assert hash_json({"a": 1, "b": [1, 2]}) == hash_json({"b": [1, 2], "a": 1})
    assert hash_json({"a": [1, 2]}) != hash_json({"a": [2, 1]})
    assert hash_json({"a": 1}) != hash_json({"a": "1"})
