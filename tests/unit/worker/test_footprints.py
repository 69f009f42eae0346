"""By how much each run makes its process grow, told from what the process has in all."""

import pytest

from shoal.worker.policies.footprints import KINDS_MAX, TELL_BYTES_MIN, Footprints

MIB = 1 << 20

MB = 1_000_000


class Process:
    """A process whose memory is looked at; runs are texts such as `load-1`, of the kind `load`."""

    def __init__(self) -> None:
        self.footprints: Footprints[str] = Footprints(lambda run: run.partition("-")[0])
        self.managed = 50 * MB
        self.process = 100 * MB
        self.look()

    def look(self, *going: str, process: int | None = None, peak: int = 0) -> None:
        if process is not None:
            self.process = process * MB
        highest = max(self.process, peak * MB)
        self.footprints.look(going, self.process, highest, self.managed)

    def end(self, *runs: str, kept: int = 0) -> dict[str, int]:
        """They end, and leave results of so many MB each; what is told of them, in MB."""
        told = self.footprints.to_tell(runs, at_end=True)
        self.footprints.end(runs)
        self.managed += kept * MB * len(runs)
        self.footprints.settle(self.process, self.managed)
        return {run: round(nbytes / MB) for run, nbytes in told}

    def told(self, *runs: str) -> dict[str, int]:
        told = self.footprints.to_tell(runs, at_end=False)
        return {run: round(nbytes / MB) for run, nbytes in told}


@pytest.fixture
def process() -> Process:
    return Process()


def test_a_run_that_is_alone_has_taken_all_that_came(process: Process) -> None:
    process.look("load-1", process=300)
    process.look("load-1", process=500)
    assert process.end("load-1", kept=400) == {"load-1": 400}


def test_a_peak_between_two_looks_counts(process: Process) -> None:
    process.look("load-1", process=110, peak=900)
    assert process.end("load-1") == {"load-1": 800}


def test_a_run_that_ends_just_now_and_seems_to_go_on_counts_once(process: Process) -> None:
    process.look("load-1", process=300)
    process.look("load-1", "load-1", process=500)
    assert process.end("load-1") == {"load-1": 400}


def test_what_takes_little_is_not_worth_a_word(process: Process) -> None:
    process.look("load-1", process=100 + TELL_BYTES_MIN // MB - 1)
    assert process.end("load-1") == {}


def test_a_run_that_goes_on_is_told_of_as_it_grows(process: Process) -> None:
    process.look("load-1", process=200)
    assert process.told("load-1") == {"load-1": 100}
    process.look("load-1", process=250)
    assert process.told("load-1") == {"load-1": 150}
    assert process.end("load-1") == {}  # it is known
    process.look("load-2", process=260)
    process.look("load-2", process=290)
    assert process.end("load-2") == {"load-2": 40}


def test_a_run_of_a_kind_that_is_known_is_told_of_anew_once_it_takes_much_more(
    process: Process,
) -> None:
    process.look("load-1", process=200)
    process.end("load-1")
    process.look(process=100)
    process.look("load-2", process=200)
    assert process.told("load-2") == {"load-2": 100}
    process.look("load-2", process=240)
    assert process.told("load-2") == {}
    process.look("load-2", process=250)
    assert process.told("load-2") == {"load-2": 150}


def test_of_an_unknown_kind_it_is_told_that_it_has_not_stopped_to_grow(process: Process) -> None:
    """However slowly: who waits until it is calm would take silence for that."""
    process.look("load-1", process=105)
    assert process.told("load-1") == {"load-1": 5}
    process.look("load-1", process=108)
    assert process.told("load-1") == {}
    process.look("load-1", process=110)
    assert process.told("load-1") == {"load-1": 10}


def test_what_was_there_before_is_of_nobody(process: Process) -> None:
    process.look(process=700)
    process.look("load-1", process=800)
    assert process.end("load-1") == {"load-1": 100}


def test_results_that_come_or_go_are_no_growth(process: Process) -> None:
    process.managed += 200 * MB
    process.look("load-1", process=400)  # 200 of results that were fetched, 100 of the run
    process.managed -= 150 * MB
    process.look("load-1", process=250)
    assert process.end("load-1") == {"load-1": 100}


def test_runs_of_one_kind_share_alike(process: Process) -> None:
    process.look("load-1", "load-2", process=400, peak=500)
    assert process.end("load-1", "load-2") == {"load-1": 200, "load-2": 200}


def test_a_result_that_is_kept_is_not_of_the_next_run(process: Process) -> None:
    process.look("load-1", process=400)
    assert process.end("load-1", kept=300) == {"load-1": 300}
    process.look("add-1", process=420)
    assert process.end("add-1") == {"add-1": 20}


def test_what_a_kind_takes_alone_tells_it_from_others(process: Process) -> None:
    process.look("load-1", process=500)
    process.end("load-1")
    process.look(process=100)
    process.look("add-1", process=100)
    process.end("add-1")
    process.look("load-2", "add-2", process=500)
    told = process.end("load-2", "add-2")
    assert told["load-2"] > 350
    assert told.get("add-2", 0) < 50


def test_what_ended_runs_have_left_goes_first(process: Process) -> None:
    process.look("a-1", "b-1", process=500)
    process.end("a-1")  # 200 of it are still there
    process.look("b-1", process=300)
    process.look("b-1", process=400)
    assert process.end("b-1") == {"b-1": 300}


def test_who_has_most_can_be_named(process: Process) -> None:
    process.look("load-1", process=300)
    process.look("load-1", "add-1", process=340)
    assert [run for run, _ in process.footprints.largest(2)] == ["load-1", "add-1"]
    assert process.footprints.largest(1)[0][1] > 200 * MB


def test_no_more_is_remembered_than_is_bounded(process: Process) -> None:
    for number in range(KINDS_MAX + 50):
        process.look(f"kind{number}-1", process=200)
        process.end(f"kind{number}-1")
        process.look(process=100)
    assert len(process.footprints) == 0
    assert process.footprints.nkinds == KINDS_MAX


def test_of_kinds_that_took_little_no_more_are_remembered_either(process: Process) -> None:
    for number in range(KINDS_MAX + 50):
        process.footprints.took_little(f"kind{number}-1")
    assert process.footprints.nkinds == KINDS_MAX
    process.footprints.took_little("kind300-2")
    assert process.footprints.nkinds == KINDS_MAX


def test_results_on_their_way_are_nobodys_growth() -> None:
    """100 MiB come from a peer as a run takes 30; then they are among the results."""
    footprints: Footprints[str] = Footprints(str)
    footprints.look(["x"], 200 * MIB, 200 * MIB, 0)
    footprints.look(["x"], 260 * MIB, 260 * MIB, 0, 100 * MIB)
    footprints.look(["x"], 330 * MIB, 330 * MIB, 0, 100 * MIB)
    assert footprints.grown == 30 * MIB
    footprints.look(["x"], 330 * MIB, 330 * MIB, 100 * MIB)
    assert footprints.grown == 30 * MIB
    assert footprints.to_tell(["x"], at_end=True) == [("x", 30 * MIB)]
