from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from headrace.operators._kernels.characters import ALPHA, LINE_BREAK, SPACE, WORDLIKE, character_classes
from headrace.operators.text.gopher_quality import GopherQuality
from tests.operators.layouts import EDGE_TEXTS, corpus_texts, fuzz_texts, layouts, text_table

# The profile's punctuation, restated.
PUNCTUATION = {
    *string.punctuation,
    *(chr(c) for low, high in ((0, 9), (11, 32), (127, 160)) for c in range(low, high)),
    *"«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．１：；？～",  # noqa: RUF001
}
PROSE = "It is a long way to the river and back with all of that. "


def reference(text: str | None, **changed: Any) -> dict[str, Any] | None:
    """The rules one by one, on Python's own words and lines."""
    limits = {name: field.default for name, field in GopherQuality.model_fields.items()} | changed
    if text is None:
        return {"rule": "null_text", "value": None, "threshold": None, "note": None}
    words = text.split()
    wordlike = [word for word in words if any(c not in PUNCTUATION for c in word)]
    lines = text.splitlines()
    num_ellipses = text.count("...") + text.count("…")
    bullets = sum(line.lstrip().startswith(("•", "-")) for line in lines)
    ellipsis_ends = sum(line.rstrip().endswith(("...", "…")) for line in lines)
    measured: list[tuple[str, float | None]] = [
        ("min_words", len(wordlike)),
        ("max_words", len(wordlike)),
        ("min_mean_word_length", sum(map(len, wordlike)) / len(wordlike) if wordlike else None),
        ("max_mean_word_length", sum(map(len, wordlike)) / len(wordlike) if wordlike else None),
        ("max_hash_ratio", text.count("#") / len(words) if words else None),
        ("max_ellipsis_ratio", num_ellipses / len(words) if words else None),
        ("max_bullet_lines_frac", bullets / len(lines) if lines else None),
        ("max_ellipsis_lines_frac", ellipsis_ends / len(lines) if lines else None),
        ("min_alpha_words_frac", sum(any(c.isalpha() for c in word) for word in words) / len(words) if words else None),
        ("min_stop_words", len(set(limits["stop_words"]) & set(words))),
    ]
    for rule, value in measured:
        limit = limits[rule]
        if limit is None or value is None:
            continue
        if value < limit if rule.startswith("min") else value > limit:
            return {"rule": rule, "value": value, "threshold": limit, "note": None}
    return None


def run(texts: list[str | None], **fields: Any) -> list[dict[str, Any] | None]:
    result: list[dict[str, Any] | None] = GopherQuality(**fields).build()(text_table(texts))["_verdict"].to_pylist()
    return result


# Settings under which random texts reach the later rules too.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"min_words": 2, "min_mean_word_length": 1},
    {"min_words": None, "min_mean_word_length": None, "max_mean_word_length": None, "min_alpha_words_frac": None},
    {"min_words": 0, "max_hash_ratio": 0, "max_ellipsis_ratio": 5, "max_ellipsis_lines_frac": 0, "min_stop_words": 1},
    {
        "min_words": 1,
        "min_mean_word_length": None,
        "max_hash_ratio": None,
        "max_ellipsis_ratio": None,
        "max_bullet_lines_frac": 0.2,
        "min_alpha_words_frac": 0.3,
        "stop_words": ["abcdefgh", "abcdefghabcdefgh", "中文", "word"],
        "min_stop_words": 1,
    },
)


@pytest.mark.parametrize("fields", SETTINGS, ids=str)
def test_equals_the_reference(fields: dict[str, Any]) -> None:
    texts = [*EDGE_TEXTS, *fuzz_texts(4000, seed=4), *fuzz_texts(300, seed=5, longest=400)]
    want = [reference(text, **fields) for text in texts]
    for name, table in layouts(texts):
        assert GopherQuality(**fields).build()(table)["_verdict"].to_pylist() == want, name


def test_random_texts_reach_every_rule() -> None:
    texts = [*fuzz_texts(4000, seed=4), *fuzz_texts(300, seed=5, longest=400)]
    reached = {verdict["rule"] for fields in SETTINGS for text in texts if (verdict := reference(text, **fields))}
    assert reached == {*GopherQuality.model_fields} - {"column", "profile", "stop_words", "max_words"}


def test_real_documents(corpus_dir: Path) -> None:
    texts = corpus_texts(corpus_dir, 3000, seed=6)
    for fields in ({}, SETTINGS[2], {"min_words": 5, "max_mean_word_length": 20}):
        assert run(list(texts), **fields) == [reference(text, **fields) for text in texts]


WORDS = "the river runs with water ".split()


@pytest.mark.parametrize(
    ("rule", "text_of", "kept", "fields"),
    [
        ("min_words", lambda n: " ".join(WORDS * 20).split(" ")[:n], (50, 49), {}),
        ("max_words", lambda n: (WORDS * 40)[:n], (100, 101), {"max_words": 100}),
        ("min_mean_word_length", lambda n: ["the", "and"] * 25 + ["a"] * n, (0, 1), {}),
        (
            "max_mean_word_length",
            lambda n: ["the", "and"] * 15 + ["x" * 10] * 30 + ["y" * 17] * 29 + ["z" * (17 + n)],
            (0, 1),
            {},
        ),
        ("max_hash_ratio", lambda n: WORDS * 20 + ["a#"] * n, (11, 12), {}),
        ("max_ellipsis_ratio", lambda n: ["a..."] * n + WORDS * 20, (11, 12), {}),
        ("max_bullet_lines_frac", lambda n: ["-the river with\n"] * n + WORDS * 20 + ["\n"], (9, 10), {}),
        ("max_ellipsis_lines_frac", lambda n: ["the river with …\n"] * n + (WORDS * 20 + ["\n"]) * 7, (3, 4), {}),
        ("min_alpha_words_frac", lambda n: WORDS * 16 + ["1234"] * n, (20, 21), {}),
        ("min_stop_words", lambda n: ["river"] * 60 + ["the", "with"][2 - n :], (2, 1), {}),
    ],
)
def test_one_unit_beyond_the_limit(rule: str, text_of: Any, kept: tuple[int, int], fields: dict[str, Any]) -> None:
    at, beyond = (" ".join(text_of(n)) for n in kept)
    assert reference(at, **fields) is None, "the case is at the limit, not beyond"
    inside, outside = run([at, beyond], **fields)
    assert inside is None
    assert outside is not None
    assert outside == reference(beyond, **fields)
    assert outside["rule"] == rule


def test_stop_words_count_once_and_by_case() -> None:
    text = " ".join(["the"] * 30 + ["The", "Be", "river"] * 10)
    (verdict,) = run([text])
    assert verdict == {"rule": "min_stop_words", "value": 1.0, "threshold": 2.0, "note": None}


def test_classes_are_those_of_str() -> None:
    classes = character_classes()
    for c in [*range(0x3100), *range(0xD7F0, 0x11000), 0x1D7CE, 0x20000, 0x10FFFF]:
        character = chr(c)
        assert bool(classes[c] & SPACE) == character.isspace(), hex(c)
        assert bool(classes[c] & ALPHA) == character.isalpha(), hex(c)
        assert bool(classes[c] & LINE_BREAK) == (len(f"a{character}b".splitlines()) == 2), hex(c)
        assert bool(classes[c] & WORDLIKE) == (character not in PUNCTUATION), hex(c)
    assert np.count_nonzero(classes & LINE_BREAK) == 10


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"stop_words": ["two words"]}, "can match no word"),
        ({"stop_words": ["the", ""]}, "can match no word"),
        ({"stop_words": ["the", "the"]}, "listed twice"),
        ({"stop_words": ["the"]}, "more than there are"),
        ({"min_words": 10, "max_words": 9}, "nothing would pass"),
        ({"min_alpha_words_frac": 1.1}, "less than or equal to 1"),
        ({"profile": "dolma"}, "datatrove-split"),
        ({"min_doc_words": 5}, "Extra inputs"),
    ],
)
def test_bad_parameters(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        GopherQuality(**fields)
