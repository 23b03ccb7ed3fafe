"""From the name of an operator to its class and back: the folder is the registry.

`text.gopher_quality` means the module `text/gopher_quality.py` under this folder (or under `synthesis/recipes`),
which defines exactly one operator, named in CamelCase of the module.  Only the named module is imported, so
optional packages stay optional.  Outside code is named `theirpkg.module:ClassName`; the colon marks it.

>>> operator_name(operator_class("text.length"))
'text.length'
"""

from __future__ import annotations

import difflib
import importlib
from pathlib import Path
from typing import NamedTuple

from headrace.errors import HeadraceError, InternalError, MissingDependency, SpecError
from headrace.operators.shapes import Call, Global, Map, Operator, Reader


class Place(NamedTuple):
    """A folder that holds operators, and the package that it is."""

    folder: Path
    package: str


# The second place belongs to a floor above this one: it is looked at by path and imported by name only.
PLACES = (
    Place(Path(__file__).parent, "headrace.operators"),
    Place(Path(__file__).parent.parent / "synthesis" / "recipes", "headrace.synthesis.recipes"),
)


def names() -> list[str]:
    """All operator names, sorted, without importing any of them."""
    return sorted(_modules())


def operator_class(op: str) -> type[Operator]:
    """The class that `op` names.  Raises SpecError, or MissingDependency where an optional package is missing."""
    if ":" in op:
        module_name, _, class_name = op.partition(":")
        return _load(op, module_name, class_name, outside=True)
    modules = _modules()
    if op not in modules:
        near = difflib.get_close_matches(op, modules, n=1, cutoff=0.5)
        fix = f"did you mean {near[0]!r}?" if near else f"one of: {', '.join(sorted(modules))}"
        raise SpecError("op", repr(op), "no operator has this name", fix)
    return _load(op, modules[op], camel_case(op), outside=False)


def operator_name(cls: type[Operator]) -> str:
    """The name that a pipeline file uses for `cls`; `operator_class` gives the same class back."""
    for place in PLACES:
        prefix = place.package + "."
        if cls.__module__.startswith(prefix):
            name = cls.__module__.removeprefix(prefix)
            if "." in name and camel_case(name) == cls.__qualname__:
                return name
    if "<locals>" in cls.__qualname__:
        raise SpecError(
            "op", cls.__qualname__, "a class inside a function has no name others can import", "move it to a module"
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def camel_case(name: str) -> str:
    """Class name of an operator or module name.

    >>> camel_case("text.gopher_quality")
    'GopherQuality'
    """
    return "".join(word.capitalize() for word in name.rpartition(".")[2].split("_"))


def _modules() -> dict[str, str]:
    """Operator name -> module name, from the files alone; modules directly in a place are not operators."""
    found: dict[str, str] = {}
    for folder, package in PLACES:
        for path in folder.glob("*/**/*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if not any(part.startswith("_") for part in parts):
                found[".".join(parts)] = ".".join((package, *parts))
    return found


def _load(op: str, module_name: str, class_name: str, outside: bool) -> type[Operator]:
    try:
        module = importlib.import_module(module_name)
    except HeadraceError:
        raise
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if outside and (module_name == missing or module_name.startswith(missing + ".")):
            raise SpecError(
                "op", repr(op), f"there is no module {missing!r} here", "check its name, or install it"
            ) from error
        raise MissingDependency(
            f"op {op!r}", "", f"needs the package {missing!r}, which is not installed", "install it, or headrace[all]"
        ) from error
    except Exception as error:  # somebody's module: whatever it raises while importing is told, not hidden
        raise SpecError(
            f"op {op!r}", f"{type(error).__name__}: {error}", f"{module_name} failed to import", "fix that module"
        ) from error
    found: object = module
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, Reader | Map | Call | Global):
        return found
    rule = f"{module_name} must define {class_name} as a Reader, Map, Call or Global"
    got = "nothing of that name" if found is None else repr(found)
    if outside:
        near = difflib.get_close_matches(class_name, dir(module), n=1)
        raise SpecError(f"op {op!r}", got, rule, f"did you mean {near[0]!r}?" if near else "")
    raise InternalError(f"op {op!r}", got, rule, "please report this")
