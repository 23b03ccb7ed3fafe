"""One key in several files: renamed the same way however often the run is killed, and nothing is lost."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.pipelines.corpus import REFUSED, Doc, write_docs
from tests.pipelines.driving import Ended, Site, steps


def _repeat_keys(docs: list[Doc]) -> list[Doc]:
    """Good rows with texts of their own; every third has the key of another one, in its own file or elsewhere."""
    texts = Counter(doc.text for doc in docs)
    good = [d for d in docs if d.id and texts[d.text] == 1 and len(d.text) > 20 and REFUSED not in d.text]
    rng = random.Random(3)
    return [Doc(d.file, rng.choice(good).id if n % 3 == 0 else d.id, d.text) for n, d in enumerate(good)]


def _names(site: Site, ended: Ended, docs: list[Doc]) -> dict[str, str]:
    """Text -> id of the published rows, after checking what must hold of any renaming."""
    assert ended.status == "published"
    rows = site.rows()
    assert len({row["id"] for row in rows}) == len(rows)
    found = {row["text"]: row["id"] for row in rows}
    assert {text: name.partition("~")[0] for text, name in found.items()} == {doc.text: doc.id for doc in docs}
    bare = Counter(name for name in found.values() if "~" not in name)
    assert bare == Counter({doc.id for doc in docs})  # each key is still somebody's id
    assert site.verify(ended.run) == []
    assert site.run().status == "already published"
    return found


@pytest.fixture
def repeated(site: Site, docs: list[Doc]) -> list[Doc]:
    chosen = _repeat_keys(docs)
    for path in site.input.iterdir():
        path.unlink()
    write_docs(site.input, chosen)
    # A reader sees one part at a time; parts as small as that put the same key into different units.
    site.write_pipeline(steps(), unit_bytes=1500)
    assert len({doc.id for doc in chosen}) < len(chosen) - 5
    return chosen


@pytest.mark.parametrize(
    "point",
    ["unit.after_stage:{}", "unit.after_record:{}", "driver.after_unit:{}", "publish.before_kept", "commit.after:3"],
)
def test_a_run_that_renames_is_killed(site: Site, repeated: list[Doc], point: str) -> None:
    """The units of the second round, which do the renaming, are the ones killed."""
    undisturbed = site.run(lake=str(site.folder / "other-lake"))
    units = undisturbed.segments[0][1]
    again = [tuple(unit) for unit in undisturbed.units[2 * units :]]
    assert len(again) > 2
    for nth in (2 * units + 1, 1):  # the restart has only the second round's units left to do
        assert site.run(fault=point.format(nth)).was_killed
        if "{}" not in point:
            break
    ended = site.run(cpus=2)
    if ended.status == "already published":
        assert point == "commit.after:3"
        ended.told["status"] = "published"
    found = _names(site, ended, repeated)
    site.folder.joinpath("lake").rename(site.folder / "first-lake")
    site.folder.joinpath("other-lake").rename(site.folder / "lake")
    assert {row["text"]: row["id"] for row in site.rows()} == found


def test_two_coordinators_that_rename(site: Site, repeated: list[Doc]) -> None:
    """The first sleeps before it sets units aside; what the second publishes meanwhile stays known by its records."""
    marker, stolen = str(site.folder / "asleep"), str(site.folder / "stolen")
    slow, fast = site.together(
        {"fault": "redo.before_marks:1=pause 60", "marker": marker}, {"cpus": 2, "after": marker, "steal": stolen}
    )
    assert (slow.run, slow.version) == (fast.run, fast.version)
    first = _names(site, fast, repeated)
    site.write_pipeline(steps(min_chars=21), unit_bytes=1500)
    assert _names(site, site.run(), repeated) == first


def test_the_next_run_of_the_source_gives_the_same_ids(site: Site, repeated: list[Doc]) -> None:
    first = _names(site, site.run(), repeated)
    site.write_pipeline(steps(min_chars=21), unit_bytes=1500)
    assert _names(site, site.run(), repeated) == first
    site.write_pipeline(steps(min_chars=22), unit_bytes=1500)
    assert _names(site, site.run(fresh="another cut", overrides=["unit_bytes=100000"]), repeated) == first
