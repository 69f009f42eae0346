"""The record of a process's end says what is known of it, and no more."""

import pickle

import pytest

from shoal.nanny.death import Death, KillsBySystem

GIB = 2**30


@pytest.mark.parametrize(
    ("death", "words"),
    [
        (Death(pid=7, exit_code=0), "exit code 0"),
        (Death(pid=7, exit_code=3), "exit code 3"),
        (Death(pid=7, exit_code=-6, signal="SIGABRT"), "killed by SIGABRT (native code gave up)"),
        (Death(pid=7, exit_code=-99, signal="signal 99"), "killed by signal 99"),
        (
            Death(pid=7),
            "its exit code is not known, as the process that had started it ended before",
        ),
        (
            Death(
                pid=7,
                exit_code=-9,
                signal="SIGKILL",
                memory_nbytes=GIB,
                memory_peak_nbytes=2 * GIB,
                memory_limit_nbytes=4 * GIB,
            ),
            "killed by SIGKILL (somebody ended it, or the system did because memory ran out; it "
            "had used up to 2.00 GiB of its limit of 4.00 GiB)",
        ),
        (
            Death(
                pid=7,
                exit_code=-9,
                signal="SIGKILL",
                memory_nbytes=GIB,
                memory_limit_nbytes=GIB,
                by_memory_limit=True,
            ),
            "killed at 1.00 GiB, too near to its memory limit of 1.00 GiB",
        ),
        (
            Death(
                pid=8,
                exit_code=-9,
                signal="SIGKILL",
                memory_nbytes=2 * GIB,
                memory_limit_nbytes=GIB,
                by_memory_limit=True,
            ),
            "killed at 2.00 GiB, above its memory limit of 1.00 GiB",
        ),
    ],
)
def test_an_end_is_told_in_one_sentence(death: Death, words: str) -> None:
    assert death.describe() == words


def test_only_a_known_and_good_end_is_clean() -> None:
    assert Death(pid=7, exit_code=0).is_clean
    assert not Death(pid=7, exit_code=1).is_clean
    assert not Death(pid=7).is_clean


def test_a_death_is_the_same_after_it_has_travelled() -> None:
    death = Death(pid=7, exit_code=-11, signal="SIGSEGV", last_lines="Fatal Python error")
    assert pickle.loads(pickle.dumps(death)) == death


def test_one_kill_by_the_system_explains_one_death() -> None:
    """Else whoever is killed by hand later, and began before, seems to have had no memory left."""
    nkills = 3
    kills = KillsBySystem(lambda: nkills)
    begun = kills.nunexplained
    assert not kills.explains(begun)
    nkills += 2
    assert kills.explains(begun)
    assert kills.explains(begun)
    assert not kills.explains(begun)
    nkills += 1
    assert not kills.explains(kills.nunexplained)  # it was killed before this one began
    assert kills.explains(begun)
