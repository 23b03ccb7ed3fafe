from __future__ import annotations

import pytest

from headrace.cli.invocation import Invocation


@pytest.mark.parametrize(
    ("arguments", "rest", "is_debug", "is_json"),
    [
        (["run", "f"], ["run", "f"], False, False),
        (["run", "--debug", "f", "--json"], ["run", "f", "--json"], True, True),
        (["why", "r", "--", "--debug"], ["why", "r", "--", "--debug"], False, False),
        (["--debug", "why", "--", "--json"], ["why", "--", "--json"], True, False),
    ],
)
def test_flags_in_front_of_two_dashes(arguments: list[str], rest: list[str], is_debug: bool, is_json: bool) -> None:
    call, left = Invocation.of(arguments)
    assert left == rest
    assert (call.is_debug, call.is_json) == (is_debug, is_json)


def test_resume_command_can_be_pasted() -> None:
    assert Invocation().resume_command == ""
    assert Invocation(run="r1").resume_command == "headrace resume r1"
    assert Invocation(run="r1", lake="my lake").resume_command == "headrace resume r1 --lake 'my lake'"
    assert Invocation(lake="my lake").lake_option == " --lake 'my lake'"
    assert Invocation(run="r1").lake_option == ""
