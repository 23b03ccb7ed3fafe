"""What happened to the rows, step by step, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.cli.output import Output, count

HEADERS = ("step", "operator", "rows in", "kept", "dropped", "quarantined")
RIGHT = ("step", "rows in", "kept", "quarantined")


def show_funnel(output: Output, steps: Sequence[Mapping[str, Any]]) -> None:
    """Steps are plain values as in a run's report: index, op, rows_in, kept, dropped by rule, quarantined."""
    rows = [
        [
            str(step["index"]),
            step["op"],
            count(step["rows_in"]),
            count(step["kept"]),
            ", ".join(f"{count(n)} by {rule}" for rule, n in step["dropped"].items()),
            count(step["quarantined"]),
        ]
        for step in steps
    ]
    dropped = sum(sum(step["dropped"].values()) for step in steps)
    quarantined = sum(step["quarantined"] for step in steps)
    first, last = steps[0], steps[-1]
    rows.append(["", "all", count(first["rows_in"]), count(last["kept"]), count(dropped), count(quarantined)])
    output.table(HEADERS, rows, RIGHT)


def gates_line(gates: Sequence[Mapping[str, Any]]) -> str:
    """What each gate measured."""
    told = (
        f"{gate['gate']} {gate['value']:g} (limit {gate['limit']:g}){'' if gate['passed'] else ' FAILED'}"
        for gate in gates
    )
    return f"gates: {', '.join(told)}"
