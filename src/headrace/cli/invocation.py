"""One call of the command: what its parts, and whoever has to end it early, must know of each other."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

DEBUG = "--debug"


@dataclass
class Invocation:
    """Filled by the command while it works; read when it ends, in whichever way."""

    is_json: bool = False
    is_debug: bool = False
    run: str = ""  # known once the run is planned
    lake: str = ""  # as given on the command line, for a line that can be pasted
    signum: int = 0  # the signal that asked this call to stop
    is_told: bool = False  # that it stopped

    @classmethod
    def of(cls, arguments: Sequence[str]) -> tuple[Invocation, list[str]]:
        """The call and its arguments without `--debug`, which may stand anywhere in front of a `--`."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        front, rest = list(arguments[:end]), list(arguments[end:])
        call = cls(is_json="--json" in front, is_debug=DEBUG in front)
        return call, [argument for argument in front if argument != DEBUG] + rest

    @property
    def resume_command(self) -> str:
        """What continues the run; empty where no run is known."""
        return f"headrace resume {self.run}{self.lake_option}" if self.run else ""

    @property
    def lake_option(self) -> str:
        """What a line that can be pasted ends with, so that it means the same lake."""
        return f" --lake {shlex.quote(self.lake)}" if self.lake else ""
