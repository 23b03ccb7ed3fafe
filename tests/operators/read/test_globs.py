from __future__ import annotations

import pytest

from headrace.operators.read._globs import check_glob, compile_globs


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("**/*.md", ["a.md", "b/a.md", "b/c/.md", "x/a\nb.md"], ["a.mdx", "amd", "a.md/b"]),
        ("*.md", ["a.md"], ["b/a.md"]),
        ("docs/**", ["docs/a", "docs/b/c"], ["docs", "other/docs/a"]),
        ("**/docs/*.txt", ["docs/a.txt", "x/y/docs/a.txt"], ["docs/z/a.txt", "mydocs/a.txt"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("part-[0-9]?.json", ["part-01.json", "part-9x.json"], ["part-a1.json", "part-0.json"]),
        ("[!a]b", ["cb"], ["ab", "/b"]),
        ("a[b", ["a[b"], ["ab"]),
        ("./x/a+(1).txt", ["x/a+(1).txt"], ["x/aa1.txt"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_a_glob_matches_whole_paths(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = compile_globs([pattern])
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in others if matches(path)] == []


def test_several_globs_are_alternatives_and_none_match_nothing() -> None:
    matches = compile_globs(["*.a", "*.b"])
    assert matches("x.a")
    assert matches("x.b")
    assert not matches("x.ab")
    assert not compile_globs([])("x")


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../b"])
def test_globs_stay_under_the_root(pattern: str) -> None:
    with pytest.raises(ValueError, match="relative to root"):
        check_glob(pattern)
