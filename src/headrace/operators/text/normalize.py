"""See `Normalize`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from headrace.operators._kernels.require import require_numba
from headrace.operators.columns import text_buffers, text_chunks
from headrace.operators.shapes import Map, MapFunction

_PLACE = "text.normalize"


class Normalize(Map):
    r"""Text gets one form of every line end, blank and composed character, and loses controls and idle white space.

    Tabs and indentation stay.  Controls go before NFC, so that a letter, NUL and accent compose.  Applying it twice
    changes nothing, whichever switches are on; only rows that NFC can change pay for it.

    Columns
        reads    text: string or large_string, null allowed
        writes   text: same type; null stays null
        rows     n -> n
    Cost: CPU, O(bytes); no model memory.  See the folder's README for MB/s.
    Raises: DataError if the column is missing, is not string, or is not UTF-8.
    Source: ours; NFC is Unicode Standard Annex 15.

    >>> table = pa.table({"text": ["caf\u0065\u0301\r\n\r\n\r\n\r\n ol\u00e9 \x00", None]})
    >>> Normalize().build()(table)["text"].to_pylist()
    ['café\n\n olé', None]
    """

    column: str = Field("text", description="column that holds the text")
    controls: bool = Field(True, description="remove control characters other than white space, and U+FEFF")
    line_ends: bool = Field(True, description="CR LF, CR, NEL, U+2028 and U+2029 become LF")
    blanks: bool = Field(True, description="Unicode blanks, vertical tab and form feed become a space; tabs stay")
    trim_lines: bool = Field(True, description="remove spaces and tabs before a line end and at the end of the text")
    limit_newlines: bool = Field(True, description="three or more LF in a row become two")
    trim_text: bool = Field(True, description="remove blank lines before the text and white space after it")
    nfc: bool = Field(True, description="compose characters (Unicode NFC)")

    def build(self) -> MapFunction:
        """Compile or load the kernel and make the character table."""
        require_numba(_PLACE)
        from headrace.operators._kernels import normalize as kernel
        from headrace.operators._kernels.normalize_table import normalize_table

        marks = (kernel.DROP, kernel.BLANK, kernel.NEWLINE, kernel.MAYBE_NFC)
        marks_of = normalize_table(self.controls, self.line_ends, self.blanks, self.nfc, marks)

        def normalize_chunk(texts: pa.LargeStringArray) -> pa.LargeStringArray:
            buffers = text_buffers(texts)
            out = np.empty(buffers.offsets[-1] - buffers.offsets[0], np.uint8)
            out_offsets = np.empty(len(texts) + 1, np.int64)
            needs_nfc = np.zeros(len(texts), np.bool_)
            kernel.normalize_rows(
                buffers.bytes,
                buffers.offsets,
                marks_of,
                self.trim_lines,
                self.limit_newlines,
                self.trim_text,
                out,
                out_offsets,
                needs_nfc,
            )
            done = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(out_offsets), pa.py_buffer(out))
            if needs_nfc.any():
                rows = pa.array(needs_nfc)
                done = pc.replace_with_mask(done, rows, pc.utf8_normalize(done.filter(rows), form="NFC"))
            return pc.if_else(texts.is_valid(), done, None) if texts.null_count else done

        def normalize(table: pa.Table) -> pa.Table:
            chunks = [normalize_chunk(chunk) for chunk in text_chunks(table, self.column, _PLACE)]
            at = table.schema.get_field_index(self.column)
            field = table.schema.field(at)
            column = pa.chunked_array([chunk.cast(field.type) for chunk in chunks], field.type)
            return table.set_column(at, field, column)

        return normalize
