"""How a dataset is named: `name`, `name@12`, `name@prod`.

>>> Reference.parse("docs/python@prod")
Reference(name='docs/python', at='prod')
>>> str(Reference("docs/python", 12))
'docs/python@12'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.errors import SpecError

_SEGMENT = re.compile(r"[a-z0-9][a-z0-9._-]*")
_DATE = re.compile(r"[0-9]{4}[._-]?[0-9]{1,2}([._-]?[0-9]{1,2})?([t_.-]?[0-9]{2}.*)?z?")
_SEGMENT_LIMIT = 200  # a file system takes 255 bytes; `.quarantine.lance` comes on top

SYSTEM = "_"
"""First letter of the datasets that Headrace keeps for itself; no user's name can start with it."""


@dataclass(frozen=True)
class Reference:
    """A dataset, and where in its history: a version number, a channel or tag, or None for the newest."""

    name: str
    at: int | str | None = None

    def __post_init__(self) -> None:
        """Check both parts, so that a reference that exists is well formed."""
        check_name(self.name)
        if isinstance(self.at, str):
            check_tag(self.at)
        elif self.at is not None and (isinstance(self.at, bool) or self.at < 1):
            raise SpecError("dataset reference", repr(self.at), "versions count from 1", "write name@1")

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read `name[@version-or-tag]`; SpecError where it is not one."""
        name, mark, at = text.partition("@")
        if mark and re.fullmatch(r"[0-9]{1,18}", at):
            return cls(name, int(at))
        return cls(name, at if mark else None)

    def __str__(self) -> str:
        """The text that parses back to this."""
        return self.name if self.at is None else f"{self.name}@{self.at}"


def check_name(name: str) -> str:
    """The name itself where it is a dataset's name; SpecError otherwise."""
    rule = "a dataset name is made of slash-separated segments [a-z0-9][a-z0-9._-]*"
    segments = name.split("/")
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise SpecError("dataset name", repr(name), rule, "use lower case letters, digits and . _ -")
        if segment.endswith(".lance"):
            raise SpecError("dataset name", repr(name), "the ending .lance is added by the lake", "leave it out")
        if len(segment) > _SEGMENT_LIMIT:
            raise SpecError("dataset name", repr(name), f"a segment has at most {_SEGMENT_LIMIT} letters", "shorten it")
    return name


def is_name(name: str) -> bool:
    """True where `check_name` accepts it."""
    try:
        return check_name(name) == name
    except SpecError:
        return False


def check_tag(tag: str) -> str:
    """The tag itself where it is a tag's or channel's name; SpecError otherwise."""
    if not _SEGMENT.fullmatch(tag) or ".." in tag or tag.endswith((".", ".lock", ".json")) or len(tag) > _SEGMENT_LIMIT:
        rule = "a tag is [a-z0-9][a-z0-9._-]*, without '..', not ending in '.', '.lock' or '.json'"
        raise SpecError("tag", repr(tag), rule, "use lower case letters, digits and . _ -")
    if tag.isdigit() or _DATE.fullmatch(tag):
        rule = "a tag is never all digits or a date, which would read as a version or a time"
        raise SpecError("tag", repr(tag), rule, f"write v{tag}")
    return tag
