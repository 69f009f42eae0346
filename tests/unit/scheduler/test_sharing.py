"""Weights of clients, and what their tasks cost them."""

import pytest

from shoal.ids import ClientId, TaskId
from shoal.scheduler.model.entities import Client, Prefix
from shoal.scheduler.model.shares import COST_MAX, STEP, Level, Standing
from shoal.scheduler.policies.sharing import (
    DRIFT_MAX,
    WEIGHT_MAX,
    WEIGHT_MIN,
    cost,
    units_seen,
    weight_of,
)


def prefix_of(duration_us: int) -> Prefix:
    prefix = Prefix("f")
    prefix.duration_us = duration_us
    return prefix


@pytest.mark.parametrize(
    ("name", "asked", "weight"),
    [
        ("Client-1", 1.0, 1.0),
        ("Client-1", 2.5, 2.5),
        ("team-a", 9.0, 3.0),
        ("team-batch", 9.0, 0.5),
        ("Client-1", 1e9, WEIGHT_MAX),
        ("Client-1", 0.0, WEIGHT_MIN),
        ("Client-1", float("nan"), WEIGHT_MIN),
        ("Client-1", float("inf"), WEIGHT_MAX),
    ],
)
def test_the_first_pattern_that_fits_says_the_weight_or_else_the_client(
    name: str, asked: float, weight: float
) -> None:
    patterns = {"team-batch": 0.5, "team-*": 3.0}
    assert weight_of(name, asked, patterns) == weight


def test_a_task_costs_what_it_is_expected_to_take_by_its_clients_weight() -> None:
    level = Level(0, typical_us=1000.0)
    assert cost(prefix_of(1000), level, 1.0) == STEP
    assert cost(prefix_of(10_000), level, 1.0) == 10 * STEP
    assert cost(prefix_of(1000), level, 2.0) == STEP // 2
    assert cost(prefix_of(-1), level, 1.0) == cost(None, level, 1.0) == STEP
    assert cost(prefix_of(0), level, 1.0) == 1
    assert cost(prefix_of(10**15), level, 0.01) == COST_MAX


def served(level: Level, client: Client, ntasks: int, expected_us: int) -> None:
    """So many tasks of a client were sent, a step apart."""
    level.standings[client] = Standing(0, ntasks * STEP, TaskId(0))
    for i in range(ntasks):
        level.serve(i * STEP, expected_us)


def test_what_a_second_is_worth_follows_what_was_paid_for_it() -> None:
    """Tasks that were given a step each turn out to take twice as long as was thought."""
    client = Client(ClientId(1), "c", 0.0)
    level = Level(0, typical_us=1000.0)
    served(level, client, 10_000, 2000)
    units = units_seen(level, {client: 1.0})
    assert units == pytest.approx(STEP / 2000, rel=0.01)
    level.look_again(units)
    assert (level.typical_us, level.nserved, level.served_us) == (2000.0, 0, 0)
    assert level.mark == 9999 * STEP


def test_a_few_tasks_do_not_turn_it_over() -> None:
    client = Client(ClientId(1), "c", 0.0)
    level = Level(0, typical_us=1000.0)
    served(level, client, 32, 1_000_000)
    before = level.units_per_us
    assert units_seen(level, {client: 1.0}) >= before / DRIFT_MAX


def test_nothing_seen_changes_nothing() -> None:
    level = Level(0, typical_us=1000.0)
    assert units_seen(level, {}) == level.units_per_us
    level.serve(5, 0)
    assert units_seen(level, {}) == level.units_per_us


def test_an_order_has_got_to_the_middle_of_what_was_sent_last() -> None:
    level = Level(100, typical_us=1.0)
    for tag in (*range(101, 130), 1, 2, 3):
        level.serve(tag, 1)
    assert 115 <= level.reached <= 125
    assert level.furthest == 129
