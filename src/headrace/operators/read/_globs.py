"""Globs over paths relative to a root: `*`, `?`, `[a-z]` within a name, `**` over folders.

>>> matches = compile_globs(["**/*.md"])
>>> bool(matches("a.md")), bool(matches("docs/deep/a.md")), bool(matches("a.mdx"))
(True, True, False)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence


def check_glob(pattern: str) -> str:
    """The pattern itself; ValueError where it could never match a path under the root."""
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise ValueError(f"{pattern!r} must be relative to root, without '..'")
    return pattern


def compile_globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A function that tells whether any of the patterns matches a whole path."""
    if not patterns:
        return lambda path: False
    union = re.compile("|".join(f"(?:{_to_regex(pattern)})" for pattern in patterns), re.DOTALL)
    return lambda path: union.fullmatch(path) is not None


def _to_regex(pattern: str) -> str:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    told = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            told.append(".*" if last else "(?:[^/]+/)*")
        else:
            told.append(_name_to_regex(part) + ("" if last else "/"))
    return "".join(told)


def _name_to_regex(name: str) -> str:
    out, at = [], 0
    while at < len(name):
        letter = name[at]
        at += 1
        if letter == "*":
            out.append("[^/]*")
        elif letter == "?":
            out.append("[^/]")
        elif letter == "[" and (close := name.find("]", at + 1 + (name[at : at + 1] == "!"))) > 0:
            inside = name[at:close].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]")
            at = close + 1
        else:
            out.append(re.escape(letter))
    return "".join(out)
