"""Which runs go on for long is found out without anybody noting when they begin."""

from shoal.ids import CodeId, Key, RunId, TaskId
from shoal.protocol.messages import RunTask
from shoal.worker.model.entities import Run
from shoal.worker.shell.lingering import TOLD_MAX, Lingering


def run(number: int) -> Run:
    return Run(RunTask(TaskId(number), RunId(number), Key("x"), CodeId(1), 0, 0.0, 1))


def test_what_was_executed_before_is_told_with_the_time_since_then():
    lingering, one, other = Lingering(), run(1), run(2)
    assert lingering.look([one], 10.0) == ([], [])
    assert lingering.look([one, other], 15.0) == ([1], [5.0])
    assert lingering.look([other, one], 20.0) == ([1, 2], [10.0, 5.0])
    assert lingering.look([other], 25.0) == ([2], [10.0])
    assert lingering.look([], 30.0) == ([], [])


def test_runs_of_a_lost_scheduler_are_not_told():
    lingering, one = Lingering(), run(1)
    lingering.look([one], 0.0)
    one.abandoned = True
    assert lingering.look([one], 5.0) == ([], [])


def test_of_very_many_the_longest_are_told():
    lingering = Lingering()
    runs = [run(number) for number in range(1, TOLD_MAX + 10)]
    for i in range(len(runs)):
        lingering.look(runs[: i + 1], float(i))
    told, _ = lingering.look(runs, 100.0)
    assert told == list(range(1, TOLD_MAX + 1))
