"""What is done about memory as it fills, look after look."""

import pytest

from shoal.worker.policies.pressure import (
    BELOW_SECONDS,
    RECYCLE_AGAIN_SECONDS,
    TRIM_PAUSE_SECONDS,
    TRIM_PAUSE_SECONDS_MAX,
    Found,
    Pressure,
    Relief,
    Thresholds,
)

LIMIT = 1000


class Looks:
    """A worker with a limit of 1000 bytes, which is looked at ten times a second."""

    def __init__(self, **ratios: float | None) -> None:
        usual = {
            "target_ratio": 0.6,
            "spill_ratio": 0.7,
            "pause_ratio": 0.8,
            "recycle_after_seconds": None,
        }
        self.pressure = Pressure(Thresholds.of(LIMIT, **(usual | ratios)))
        self.now = 100.0

    def find(
        self,
        process: int,
        managed: int = 0,
        *,
        leaving: int = 0,
        nexecuting: int = 0,
        is_trimming: bool = False,
        after: float = 0.1,
    ) -> Relief:
        self.now += after
        found = Found(
            process=process,
            managed=managed,
            leaving=leaving,
            nexecuting=nexecuting,
            is_trimming=is_trimming,
        )
        return self.pressure.look(found, self.now)


def test_nothing_is_done_while_there_is_room() -> None:
    looks = Looks()
    assert not any(looks.find(process, process) for process in (0, 500, 700))


def test_what_is_free_is_given_back_before_anything_is_written() -> None:
    looks = Looks()
    first = looks.find(750, 700)
    assert first.trim
    assert first.collect
    assert not first.spill_bytes
    assert not looks.find(750, 700, is_trimming=True).spill_bytes
    assert looks.find(750, 700).spill_bytes == 150  # down to the target
    assert looks.find(750, 700, leaving=100).spill_bytes == 50
    assert looks.find(750, 700, leaving=400).spill_bytes == 0


def test_no_more_is_spilled_than_there_is() -> None:
    looks = Looks()
    looks.find(750)
    assert looks.find(750, 20).spill_bytes == 20
    assert looks.find(750, 0).spill_bytes == 0


def test_above_the_pause_everything_is_done_at_once() -> None:
    relief = Looks().find(900, 900)
    assert relief.pauses
    assert relief.trim
    assert relief.collect
    assert relief.spill_bytes == 300


def test_spilling_and_pausing_can_be_switched_off_one_by_one() -> None:
    assert Looks(spill_ratio=None).find(900, 900).spill_bytes == 0
    assert not Looks(pause_ratio=None).find(900, 900).pauses
    assert not Looks(spill_ratio=None, pause_ratio=None).find(10_000, 900)
    without_target = Looks(target_ratio=None)
    assert without_target.find(900, 900).spill_bytes == 200  # down to where it begins


def test_who_pauses_before_it_would_spill_spills_as_it_pauses() -> None:
    looks = Looks(pause_ratio=0.4)
    assert looks.find(500, managed=300).spill_bytes >= 100


def test_a_pause_is_said_once_and_ends_well_below_it() -> None:
    looks = Looks()
    assert looks.find(801).pauses
    assert not looks.find(850).pauses
    assert not looks.find(760).resumes
    assert looks.find(750).resumes
    assert not looks.find(740).resumes
    assert looks.find(801).pauses


def test_a_pause_ends_just_below_it_if_that_lasts() -> None:
    looks = Looks()
    looks.find(801)
    assert not looks.find(790).resumes
    assert not looks.find(790, after=BELOW_SECONDS - 0.01).resumes
    looks.find(810)
    assert not looks.find(790).resumes  # it was above in between
    assert looks.find(790, after=BELOW_SECONDS).resumes


def test_what_does_not_help_is_done_ever_less_often() -> None:
    looks = Looks()
    ntrims = sum(looks.find(900).trim for _ in range(1200))  # two minutes
    assert ntrims < 5 + 120 / TRIM_PAUSE_SECONDS_MAX
    looks.find(500)  # the pause ends, and so does what it has learnt
    looks.find(500)
    assert looks.find(900, after=TRIM_PAUSE_SECONDS_MAX).trim
    assert looks.find(900, after=TRIM_PAUSE_SECONDS).trim


def test_collections_that_take_long_are_rare() -> None:
    looks = Looks()
    assert looks.find(900).collect
    looks.pressure.collected(1.0, looks.now)
    ncollected = sum(looks.find(900).collect for _ in range(190))  # 19 s
    assert ncollected == 0
    assert looks.find(900, after=1.1).collect


def test_a_worker_that_leaks_is_to_be_replaced_and_asks_again() -> None:
    looks = Looks(recycle_after_seconds=5.0)
    looks.find(900)
    assert not looks.find(900, after=4.9).recycle
    assert looks.find(900, after=0.1).recycle
    assert not looks.find(900).recycle
    assert looks.find(900, after=min(5.0, RECYCLE_AGAIN_SECONDS)).recycle


@pytest.mark.parametrize(
    ("process", "managed", "nexecuting"),
    [
        pytest.param(900, 0, 1, id="a run may give it back"),
        pytest.param(790, 0, 0, id="it is about to resume"),
    ],
)
def test_a_worker_that_may_get_room_is_not_replaced(
    process: int, managed: int, nexecuting: int
) -> None:
    looks = Looks(recycle_after_seconds=5.0)
    looks.find(900)
    assert not looks.find(process, managed, nexecuting=nexecuting, after=60.0).recycle


def test_a_worker_whose_results_neither_leave_nor_are_let_go_of_is_to_be_replaced() -> None:
    looks = Looks(recycle_after_seconds=5.0)
    looks.find(900, 500)
    assert not looks.find(900, 490, after=4.9).recycle
    assert not looks.find(900, 490, after=4.9).recycle
    assert not looks.find(900, 495, after=0.05).recycle  # a run that has ended has left one
    assert looks.find(900, 490, after=0.1).recycle
    assert not looks.find(900, 490).recycle


def test_a_worker_whose_limit_is_too_small_for_any_is_not_replaced() -> None:
    looks = Looks(recycle_after_seconds=60.0)
    looks.pressure.begin(850)
    looks.find(900)
    assert not looks.find(900, after=61.0).recycle
    looks = Looks(recycle_after_seconds=60.0)
    looks.pressure.begin(750)
    looks.find(900)
    assert looks.find(900, after=61.0).recycle


def test_nobody_is_replaced_if_that_is_switched_off() -> None:
    looks = Looks(recycle_after_seconds=None)
    looks.find(900)
    assert not looks.find(900, after=1e6).recycle
