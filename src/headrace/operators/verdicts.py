"""The verdict column of a filter, built rule by rule without a Python object per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.errors import DataError
from headrace.operators.shapes import VERDICT, VERDICT_COLUMN


class Verdicts:
    """Verdicts over `num_rows` rows.  The first rule that drops a row is the one that is told.

    >>> verdicts = Verdicts(3)
    >>> chars = np.array([2, 50, 9])
    >>> verdicts.drop("min_chars", chars < 10, chars, 10)
    >>> [row and row["value"] for row in verdicts.column().to_pylist()]
    [2.0, None, 9.0]
    """

    def __init__(self, num_rows: int) -> None:
        """Start with every row kept."""
        self._rule = np.zeros(num_rows, np.int32)  # 0 keeps; k names _names[k - 1]
        self._value = np.full(num_rows, np.nan)
        self._threshold = np.full(num_rows, np.nan)
        self._note: list[tuple[npt.NDArray[np.int64], pa.Array]] = []
        self._names: list[str] = []

    def drop(
        self,
        rule: str,
        rows: npt.NDArray[np.bool_],
        value: npt.NDArray[np.generic] | None = None,
        threshold: float | None = None,
        note: pa.Array | None = None,
    ) -> None:
        """Drop the marked rows that no earlier rule dropped.  `value` and `note` have one entry a row; NaN is null."""
        fresh = rows & (self._rule == 0)
        self._names.append(rule)
        self._rule[fresh] = len(self._names)
        if value is not None:
            self._value[fresh] = value[fresh]
        if threshold is not None:
            self._threshold[fresh] = threshold
        if note is not None:
            at = np.flatnonzero(fresh)
            self._note.append((at, note.take(pa.array(at)).cast(pa.string())))

    def column(self) -> pa.StructArray:
        """The verdicts as an array of type VERDICT."""
        kept = self._rule == 0
        names = pa.array(["", *self._names], pa.string())
        parts = [
            names.take(pa.array(self._rule, mask=kept)),
            pa.array(self._value, mask=np.isnan(self._value)),
            pa.array(self._threshold, mask=np.isnan(self._threshold)),
            self._notes(),
        ]
        return pa.StructArray.from_arrays(parts, fields=list(VERDICT), mask=pa.array(kept))

    def add_to(self, table: pa.Table) -> pa.Table:
        """`table` with the verdict column appended."""
        if VERDICT_COLUMN in table.schema.names:
            raise DataError(
                VERDICT_COLUMN, "a table that has it already", "only the engine hands verdicts on", "rename the column"
            )
        return table.append_column(VERDICT_COLUMN, self.column())

    def _notes(self) -> pa.Array:
        if not self._note:
            return pa.nulls(len(self._rule), pa.string())
        pool = pa.concat_arrays([texts for _, texts in self._note])
        index = np.full(len(self._rule), -1, np.int64)
        index[np.concatenate([at for at, _ in self._note])] = np.arange(len(pool))
        return pool.take(pa.array(index, mask=index < 0))
