"""What a worker's machine records, in the words that plugins know."""

import logging

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.observe.hooking import PluginTable
from shoal.observe.hooks import WorkerPlugin
from shoal.protocol.messages import RunTask
from shoal.worker.machine.state import WorkerState
from shoal.worker.model.entities import MachineSettings, Run
from shoal.worker.shell.watching import PATHS, RunWatcher

logger = logging.getLogger("test-of-watching")


class Told(WorkerPlugin):
    def __init__(self):
        self.moves = []

    def transition(self, key, start, finish, **kwargs):
        self.moves.append((key, start, finish))


def watched():
    state = WorkerState(MachineSettings(address="tcp://a:1"))
    state.epoch = Epoch(1)
    table = PluginTable(WorkerPlugin, ("transition",), logger, "the worker")
    plugin = Told()
    table.add("told", plugin)
    return state, RunWatcher(state, table), plugin


def run(key="x"):
    return Run(RunTask(TaskId(1), RunId(1), Key(key), CodeId(1), b"", 0.0, 0))


def test_a_run_goes_through_all_of_its_states():
    state, watcher, plugin = watched()
    for what in ("handed to the threads", "finished", "freed"):
        state.record(Key("x"), what)
        watcher.tell()
    states = [plugin.moves[0][1], *(finish for _, _, finish in plugin.moves)]
    assert states == [
        "released",
        "waiting",
        "ready",
        "executing",
        "memory",
        "released",
        "forgotten",
    ]


def test_a_run_that_has_begun_is_told_of_once():
    state, watcher, plugin = watched()
    state.record(Key("x"), "handed to the threads")
    watcher.tell()
    watcher.begun(run())
    assert plugin.moves[-1] == ("x", "ready", "executing")
    state.record(Key("x"), "finished")
    watcher.tell()
    watcher.begun(run())  # its message came late
    assert plugin.moves[-1] == ("x", "executing", "memory")
    assert len(plugin.moves) == 4


def test_each_transition_starts_where_the_one_before_it_ended():
    state, watcher, plugin = watched()
    for what in ("waits for inputs", *PATHS, "handed to the threads", "failed", "put here"):
        state.record(Key("x"), what)
    watcher.tell()
    before = "released"
    for _, start, finish in plugin.moves:
        assert start in (before, "released")
        assert start != finish
        before = "released" if finish == "forgotten" else finish


def test_nothing_is_kept_of_what_is_forgotten():
    state, watcher, _ = watched()
    for number in range(100):
        state.record(Key(str(number)), "finished")
        state.record(Key(str(number)), "freed")
    watcher.tell()
    assert not watcher._states


def test_the_story_stays_when_nobody_watches_any_more():
    state, watcher, plugin = watched()
    state.record(Key("x"), "finished")
    watcher.end()
    assert [record[1:3] for record in state.story] == [("x", "finished")]
    assert state.story.maxlen == state.settings.story_records_max
    state.record(Key("x"), "freed")
    watcher.tell()
    assert [finish for _, _, finish in plugin.moves][-1] == "memory"


def test_what_was_held_in_another_life_of_the_scheduler_is_kept_no_more():
    state, watcher, _plugin = watched()
    state.record(Key("x"), "put here")
    watcher.tell()
    state.epoch = Epoch(2)
    state.record(Key("y"), "put here")
    watcher.tell()
    assert list(watcher._states) == ["y"]
