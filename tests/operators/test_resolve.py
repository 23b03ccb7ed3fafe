from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import InternalError, MissingDependency, SpecError
from headrace.operators import resolve
from headrace.operators.resolve import Place, camel_case, names, operator_class, operator_name
from headrace.operators.shapes import Map, MapFunction, Operator
from headrace.operators.text.length import Length

OUTSIDE = """
from headrace.operators.shapes import Map
class Mine(Map):
    def build(self):
        return lambda table: table
class Box:
    class Inner(Mine):
        pass
not_one = 7
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, source in {
        "outside_ops": OUTSIDE,
        "outside_broken": "raise RuntimeError('no licence found')",
        "outside_poor": "import a_package_that_is_not_there",
    }.items():
        (tmp_path / f"{name}.py").write_text(source)
    for name in ("outside_ops", "outside_broken", "outside_poor"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_every_name_gives_a_class_and_back() -> None:
    found = names()
    assert found == sorted(found)
    assert {"text.length", "text.normalize", "dedup.exact"} <= set(found)
    for name in found:
        assert operator_name(operator_class(name)) == name


def test_only_operator_modules_have_names() -> None:
    for name in names():
        assert "." in name, f"{name}: modules directly in the folder are not operators"
        assert not any(part.startswith("_") for part in name.split("."))


def test_listing_imports_no_operator() -> None:
    script = (
        "import sys; from headrace.operators.resolve import names; assert names();"
        "loaded = [m for m in sys.modules if m.startswith('headrace.operators.') and m.count('.') > 2];"
        "assert not loaded, loaded; assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("op", "fix"),
    [
        ("text.lenght", "did you mean 'text.length'?"),
        ("text.gopher", "did you mean 'text.gopher_quality'?"),
        ("Length", "did you mean 'text.length'?"),
        ("zzz", "one of: "),
        ("shapes", "one of: "),  # a module of the folder, but no operator
        ("", "one of: "),
    ],
)
def test_an_unknown_name_tells_the_nearest(op: str, fix: str) -> None:
    with pytest.raises(SpecError) as caught:
        operator_class(op)
    assert caught.value.got == repr(op)
    assert caught.value.fix.startswith(fix)


def test_outside_code_by_module_and_class(outside: Path) -> None:
    mine = operator_class("outside_ops:Mine")
    assert issubclass(mine, Map)
    assert operator_name(mine) == "outside_ops:Mine"
    inner = operator_class("outside_ops:Box.Inner")
    assert operator_name(inner) == "outside_ops:Box.Inner"


def test_our_own_by_module_and_class() -> None:
    assert operator_class("headrace.operators.text.length:Length") is Length
    assert operator_name(Length) == "text.length"


@pytest.mark.parametrize(
    ("op", "error", "told"),
    [
        ("outside_ops:Mien", SpecError, "did you mean 'Mine'"),
        ("outside_ops:not_one", SpecError, "got 7"),
        ("outside_ops:Box", SpecError, "must define Box as a Reader, Map, Call or Global"),
        ("outside_ops:Map.nothing", SpecError, "must define"),
        ("outside_nowhere.mod:X", SpecError, "no module 'outside_nowhere'"),
        ("outside_broken:X", SpecError, "RuntimeError: no licence found"),
        ("outside_poor:X", MissingDependency, "'a_package_that_is_not_there'"),
        (":X", SpecError, "failed to import"),
    ],
)
def test_outside_code_that_does_not_work(outside: Path, op: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        operator_class(op)


def test_a_shape_itself_is_no_operator() -> None:
    with pytest.raises(SpecError):
        operator_class("headrace.operators.shapes:Operator")


def test_our_own_module_without_its_class_is_our_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "empty.py").write_text("")
    package = tmp_path / "broken_place"
    (package / "text").mkdir(parents=True)
    (package / "text" / "empty.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(resolve, "PLACES", (Place(package, "broken_place"),))
    with pytest.raises(InternalError, match="must define Empty"):
        operator_class("text.empty")


def test_a_place_that_is_not_there_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "PLACES", (*resolve.PLACES, Place(tmp_path / "none", "none")))
    assert "text.length" in names()


def test_a_class_inside_a_function_has_no_name() -> None:
    class Local(Map):
        def build(self) -> MapFunction:
            return lambda table: table

    with pytest.raises(SpecError, match="move it to a module"):
        operator_name(Local)


@pytest.mark.parametrize(
    ("name", "expected"), [("text.gopher_quality", "GopherQuality"), ("jsonl", "Jsonl"), ("a.b.c_d_e", "CDE")]
)
def test_camel_case(name: str, expected: str) -> None:
    assert camel_case(name) == expected


def test_the_class_is_an_operator() -> None:
    assert all(issubclass(operator_class(name), Operator) for name in names())
