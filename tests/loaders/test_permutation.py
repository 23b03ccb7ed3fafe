from __future__ import annotations

import numpy as np
import pytest

from headrace.loaders.permutation import TABLE_LIMIT, Permutation, fold, mix, shuffled

FEISTEL = 0  # a table limit that sends every length through the network
BORDERS = sorted({2**k + d for k in range(1, 19) for d in (-1, 0, 1)} | {TABLE_LIMIT - 1, TABLE_LIMIT, TABLE_LIMIT + 1})


def is_bijection(length: int, key: int, table_limit: int) -> bool:
    places = Permutation(length, key, table_limit)(np.arange(length))
    return bool((np.sort(places) == np.arange(length)).all())


@pytest.mark.parametrize("table_limit", [TABLE_LIMIT, FEISTEL])
def test_bijection_at_every_small_length(table_limit: int) -> None:
    assert [length for length in range(1, 2_001) if not is_bijection(length, length * 7, table_limit)] == []


@pytest.mark.parametrize("table_limit", [TABLE_LIMIT, FEISTEL])
def test_bijection_around_every_power_of_two(table_limit: int) -> None:
    assert [length for length in BORDERS if not is_bijection(length, 11, table_limit)] == []


def test_places_stay_in_range_at_ten_billion() -> None:
    length = 10**10 + 1
    positions = np.concatenate([np.arange(50_000), np.arange(length - 50_000, length)])
    places = Permutation(length, 3)(positions)
    assert places.dtype == np.int64
    assert places.min() >= 0
    assert places.max() < length
    assert len(np.unique(places)) == len(positions)


def test_one_call_or_many_give_the_same() -> None:
    permutation = Permutation(100_003, 5)
    whole = permutation(np.arange(1_000))
    assert np.concatenate([permutation(np.arange(i, i + 10)) for i in range(0, 1_000, 10)]).tolist() == whole.tolist()


@pytest.mark.parametrize("length", [2, 5, 1_000, 65_536, 65_537, 10**6, 10**10 + 1, 2**40 + 1])
@pytest.mark.parametrize("table_limit", [TABLE_LIMIT, FEISTEL])
def test_one_place_is_the_place_in_the_array(length: int, table_limit: int) -> None:
    permutation = Permutation(length, 5, table_limit)
    positions = [*range(min(length, 100)), length // 3, length - 1]
    assert [permutation.place(position) for position in positions] == permutation(np.array(positions)).tolist()


@pytest.mark.parametrize(("length", "table_limit"), [(5_000, TABLE_LIMIT), (5_000, FEISTEL), (200_000, TABLE_LIMIT)])
def test_keys_give_unlike_orders(length: int, table_limit: int) -> None:
    orders = [Permutation(length, fold(1, epoch), table_limit)(np.arange(length)) for epoch in range(4)]
    for first in range(4):
        for second in range(first):
            same = int((orders[first] == orders[second]).sum())
            assert same < 12  # 1 is expected


@pytest.mark.parametrize("table_limit", [TABLE_LIMIT, FEISTEL])
def test_places_are_spread_evenly(table_limit: int) -> None:
    """Chi-square over 16 x 16 cells of (position, place): 225 +- 5 standard deviations."""
    length = 1 << 16
    places = Permutation(length, 9, table_limit)(np.arange(length))
    cells = np.bincount((np.arange(length) // (length // 16)) * 16 + places // (length // 16), minlength=256)
    chi_square = float(((cells - length / 256) ** 2 / (length / 256)).sum())
    assert 225 - 5 * 21.2 < chi_square < 225 + 5 * 21.2


def test_golden_vectors() -> None:
    """Frozen: a change here reorders every stream that was ever saved."""
    assert [fold(0), fold(1, 2, 3), fold(-1)] == [16294208416658607535, 7702586659592502839, 16490336266968443936]
    assert shuffled(12, 7).tolist() == [2, 0, 11, 9, 6, 8, 1, 10, 5, 7, 4, 3]
    assert Permutation(100, 42)(np.arange(8)).tolist() == [81, 55, 60, 5, 64, 96, 37, 22]
    billion = [117462785, 265311177, 814969324, 61589008, 990589637, 283799285]
    assert Permutation(10**9, 42)(np.arange(6)).tolist() == billion
    assert Permutation(2**40 + 1, 42)(np.array([0, 1, 2**40])).tolist() == [56497628502, 899925796344, 674872199267]


def test_fold_is_the_published_generator() -> None:
    """splitmix64 from seed 0: the first outputs of the reference implementation."""
    assert fold(0) == 0xE220A8397B1DCDAF
    assert mix(np.array([0x9E3779B97F4A7C15], dtype=np.uint64)).tolist() == [0xE220A8397B1DCDAF]


def test_fold_depends_on_the_order_of_its_parts() -> None:
    assert len({fold(1, 2), fold(2, 1), fold(1), fold(2), fold(1, 2, 0)}) == 5
