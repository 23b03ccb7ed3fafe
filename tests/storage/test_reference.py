from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import SpecError
from headrace.storage.reference import Reference, check_name, check_tag, is_name

NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,8}(/[a-z0-9][a-z0-9_-]{0,8}){0,2}", fullmatch=True)
PLACES = st.none() | st.integers(1, 10**12) | st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)


@given(NAMES, PLACES)
def test_round_trip(name: str, at: int | str | None) -> None:
    ref = Reference(name, at)
    assert Reference.parse(str(ref)) == ref


@pytest.mark.parametrize("name", ["a", "0", "docs/python", "a.b-c_d/e..f", "docs.rejects", "x" * 200])
def test_good_names(name: str) -> None:
    assert check_name(name) == name
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "A",
        "../x",
        "..",
        ".",
        ".a",
        "a//b",
        "/a",
        "a/",
        "a/../b",
        "a/./b",
        "_lineage",
        "-a",
        "a b",
        "a'b",
        'a"b',
        "a\n",
        "a\x00",
        "a\\b",
        "ä",
        "a@b",
        "a;b",
        "a*",
        "a%2fb",
        "a.lance",
        "a.lance/b",
        "x" * 201,
        "a/" + "x" * 201,
    ],
)
def test_hostile_names_are_refused(name: str) -> None:
    with pytest.raises(SpecError, match="dataset name"):
        check_name(name)
    assert not is_name(name)


@pytest.mark.parametrize("tag", ["prod", "candidate", "v12", "v2026-12-01", "1.0.3", "12a", "release_2", "a-b"])
def test_good_tags(tag: str) -> None:
    assert check_tag(tag) == tag


@pytest.mark.parametrize(
    "tag", ["", "A", "../x", "a/b", "a b", "a'b", 'a"b', "a..b", ".a", "a.", "a.lock", "1.json", "ä", "a\n"]
)
def test_hostile_tags_are_refused(tag: str) -> None:
    with pytest.raises(SpecError, match="tag"):
        check_tag(tag)


@pytest.mark.parametrize(
    "tag", ["12", "0", "007", "2026-12-01", "20261201", "2026-12", "2026.12.01", "2026-12-01t10", "2026_1_2"]
)
def test_tags_that_read_as_version_or_date_are_refused(tag: str) -> None:
    with pytest.raises(SpecError, match="version or a time"):
        check_tag(tag)


@pytest.mark.parametrize(
    "text", ["a@", "a@0", "a@-1", "a@A", "a@b@c", "@prod", "a@2026-12-01", "a@12345678901234567890", "a@1 "]
)
def test_hostile_references_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        Reference.parse(text)


@pytest.mark.parametrize("at", [0, -1, True, "12"])
def test_a_made_reference_is_checked_too(at: int | str) -> None:
    with pytest.raises(SpecError):
        Reference("docs", at)
