"""Values written into a Lance filter, so that no id can change what the filter says."""

from __future__ import annotations


def text_literal(value: str) -> str:
    """The value as an SQL text: quotes doubled, nothing else is special in Lance's filters.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"
