"""Where a stream stands: one integer, and what the integer counts in.

The identity fields fix the order; a state is taken only by a loader that agrees on all of them.  Batch size, epochs,
threads and columns are no part of the order and may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headrace.errors import SpecError

FORMAT = 1
"""Of the state and of the order it counts in; a change to either is another number."""

_TYPES: dict[str, type] = {
    "format": int,
    "dataset": str,
    "version": int,
    "num_rows": int,
    "seed": int,
    "shuffle": bool,
    "block_rows": int,
    "position": int,
    "finished": bool,
    "batch_size": int,
}
_IDENTITY = ("dataset", "version", "num_rows", "seed", "shuffle", "block_rows")


@dataclass(frozen=True)
class StreamState:
    """A place in a stream; `to_dict` is plain JSON below 1 KB."""

    dataset: str
    version: int
    num_rows: int
    seed: int
    shuffle: bool
    block_rows: int
    position: int = 0  # samples that the trainer has taken, over all epochs
    finished: bool = True  # at the end of a loop: the trainer has seen its end as well
    batch_size: int = 0  # for the reader's eye
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Only strings, integers and booleans."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> StreamState:
        """Read what `to_dict` wrote; SpecError where it is something else."""
        place, fix = "loader state", "pass what state_dict() gave"
        if not isinstance(state, Mapping):
            raise SpecError(place, type(state).__name__, "must be a dict", fix)
        if state.get("format", FORMAT) != FORMAT:
            rule = f"this release reads format {FORMAT}"
            raise SpecError(place, f"format {state['format']!r}", rule, "use the release that wrote it")
        missing, unknown = sorted(_TYPES.keys() - state.keys()), sorted(map(str, state.keys() - _TYPES.keys()))
        if missing or unknown:
            told = [f"no {name}" for name in missing] + [f"an unknown {name}" for name in unknown]
            raise SpecError(place, ", ".join(told), f"has exactly {', '.join(_TYPES)}", fix)
        for name, kind in _TYPES.items():
            if type(state[name]) is not kind:
                raise SpecError(f"{place}, {name}", repr(state[name]), f"must be {kind.__name__}", fix)
        if state["position"] < 0:
            raise SpecError(f"{place}, position", str(state["position"]), "counts samples from 0", fix)
        return cls(**{str(name): value for name, value in state.items()})

    def check_same_stream(self, here: StreamState) -> None:
        """SpecError that names each field on which this state and the loader `here` differ."""
        differ = [name for name in _IDENTITY if getattr(self, name) != getattr(here, name)]
        if differ:
            told = ", ".join(f"{name} {getattr(self, name)!r} (here {getattr(here, name)!r})" for name in differ)
            fix = f"open {self.dataset}@{self.version} with the settings of the state, or start a new stream"
            raise SpecError("loader state", told, "a position has a meaning only in the order it was counted in", fix)
