"""The worker's machine by its old names: what happened in, what to do out."""

import pickle

import pytest

from shoal.compat.texts import recursive_to_dict
from shoal.compat.worker_states.errors import (
    InvalidTaskState,
    InvalidTransition,
    NotDecidedHere,
    RecommendationsConflict,
)
from shoal.compat.worker_states.instructions import (
    AddKeysMsg,
    Execute,
    GatherDep,
    LongRunningMsg,
    ReleaseWorkerDataMsg,
    RequestRefreshWhoHasMsg,
    RescheduleMsg,
    StealResponseMsg,
    TaskErredMsg,
    TaskFinishedMsg,
)
from shoal.compat.worker_states.state import WorkerState
from shoal.compat.worker_states.stimuli import (
    AcquireReplicasEvent,
    CancelComputeEvent,
    ComputeTaskEvent,
    ExecuteFailureEvent,
    ExecuteSuccessEvent,
    FindMissingEvent,
    FreeKeysEvent,
    GatherDepBusyEvent,
    GatherDepFailureEvent,
    GatherDepNetworkFailureEvent,
    GatherDepSuccessEvent,
    PauseEvent,
    RemoveReplicasEvent,
    RescheduleEvent,
    SecedeEvent,
    StateMachineEvent,
    StealRequestEvent,
    UnpauseEvent,
    UpdateDataEvent,
)
from shoal.compat.worker_states.tasks import TaskState, merge_recs_instructions

NEAR, FAR = "127.0.0.1:2", "127.0.0.2:3"


def compute(key, **more):
    return ComputeTaskEvent.dummy(key, stimulus_id=f"compute-{key}", **more)


def success(key, value=1, **more):
    return ExecuteSuccessEvent.dummy(key, value, stimulus_id=f"success-{key}", **more)


def states(ws):
    return {key: shown.state for key, shown in ws.tasks.items()}


def test_a_task_waits_for_its_input_runs_and_is_in_memory():
    ws = WorkerState(address="127.0.0.1:1")
    assert ws.handle_stimulus(compute("y", who_has={"x": [NEAR]}, nbytes={"x": 7})) == [
        GatherDep("compute-y", NEAR, {"x"}, 7)
    ]
    assert states(ws) == {"y": "waiting", "x": "flight"}
    assert ws.tasks["y"].waiting_for_data == {ws.tasks["x"]}
    assert ws.in_flight_workers == {NEAR: {"x"}}
    arrived = GatherDepSuccessEvent("arrived", worker=NEAR, total_nbytes=7, data={"x": 5})
    assert ws.handle_stimulus(arrived) == [AddKeysMsg("arrived", ["x"]), Execute("arrived", "y")]
    assert ws.handle_stimulus(success("y", 6, nbytes=28)) == [
        TaskFinishedMsg.match(key="y", nbytes=28, typename="int", stimulus_id="success-y")
    ]
    assert (states(ws), ws.data) == ({"y": "memory", "x": "memory"}, {"y": 6, "x": 5})
    assert ws.nbytes >= 28
    assert ws.handle_stimulus(FreeKeysEvent("free", ["y"]), RemoveReplicasEvent("r", ["x"])) == []
    assert (ws.tasks, ws.data) == ({}, {})


def test_slots_and_amounts_are_given_to_the_most_urgent_first():
    ws = WorkerState(nthreads=1, resources={"R": 1})
    begun = ws.handle_stimulus(
        compute("a", priority=(5,), resource_restrictions={"R": 1}),
        compute("b", priority=(9,)),
        compute("c", priority=(1,), resource_restrictions={"R": 1}),
    )
    assert begun == [Execute("compute-a", "a")]
    assert states(ws) == {"a": "executing", "b": "ready", "c": "constrained"}
    seceded = ws.handle_stimulus(SecedeEvent("secede", "a", 2.0))
    assert seceded == [LongRunningMsg("secede", "a", 0, 2.0), Execute("secede", "b")]
    assert states(ws) == {"a": "long-running", "b": "executing", "c": "constrained"}
    assert ws.available_resources == {"R": 0}
    assert ws.handle_stimulus(success("b"), success("a"))[-1] == Execute("success-a", "c")


def test_a_task_that_fails_stays_to_be_seen_until_it_is_freed():
    ws = WorkerState()
    ws.handle_stimulus(compute("x"))
    failed = ws.handle_stimulus(ExecuteFailureEvent.dummy("x", stimulus_id="failed"))
    assert failed == [TaskErredMsg.match(key="x", run_id=0, stimulus_id="failed")]
    assert states(ws) == {"x": "error"}
    ws.handle_stimulus(UpdateDataEvent("put", {"y": 1}))
    assert states(ws) == {"x": "error", "y": "memory"}
    ws.handle_stimulus(FreeKeysEvent("free", ["x", "y"]))
    assert ws.tasks == {}


def test_what_is_asked_back_goes_if_it_has_not_begun():
    ws = WorkerState()
    ws.handle_stimulus(compute("a"), compute("b"), compute("c"))
    asked = ws.handle_stimulus(
        StealRequestEvent("s1", "b"), StealRequestEvent("s2", "a"), StealRequestEvent("s3", "?")
    )
    assert asked == [
        StealResponseMsg("s1", "b", "ready"),
        StealResponseMsg("s2", "a", "executing"),
        StealResponseMsg("s3", "?", None),
    ]
    assert ws.handle_stimulus(CancelComputeEvent("cancel", "c")) == []
    assert states(ws) == {"a": "executing"}
    assert ws.handle_stimulus(RescheduleEvent("again", "a")) == [RescheduleMsg("again", "a")]
    assert ws.tasks == {}


def test_what_has_begun_goes_on_though_nobody_wants_it_and_its_result_is_freed_later():
    ws = WorkerState()
    ws.handle_stimulus(compute("x"))
    assert ws.handle_stimulus(FreeKeysEvent("free", ["x"])) == []
    assert states(ws) == {"x": "cancelled"}
    assert ws.all_running_tasks == {ws.tasks["x"]}
    assert ws.handle_stimulus(success("x")) == [TaskFinishedMsg.match(key="x")]
    assert ws.handle_stimulus(FreeKeysEvent("free", ["x"])) == []
    assert ws.tasks == {}


def test_when_no_holder_gives_an_input_the_run_goes_back_and_a_copy_is_given_up():
    ws = WorkerState()
    ws.handle_stimulus(compute("y", who_has={"x": [NEAR, FAR]}))
    assert ws.handle_stimulus(GatherDepNetworkFailureEvent("cut", NEAR, 1)) == [
        GatherDep("cut", FAR, {"x"}, 1)
    ]
    assert ws.handle_stimulus(GatherDepSuccessEvent("lacks", FAR, 1, {})) == [
        RequestRefreshWhoHasMsg("lacks", ["x"]),
        RescheduleMsg("lacks", "y"),
    ]
    ws.handle_stimulus(AcquireReplicasEvent("acquire", {"z": [NEAR]}, {"z": 1}))
    assert ws.handle_stimulus(GatherDepNetworkFailureEvent("cut", NEAR, 1)) == [
        ReleaseWorkerDataMsg("cut", "z")
    ]
    assert ws.tasks == {}


def test_an_input_that_cannot_be_read_fails_those_that_wait_for_it():
    ws = WorkerState()
    ws.handle_stimulus(compute("y", who_has={"x": [NEAR]}))
    unreadable = GatherDepFailureEvent("bad", NEAR, 1, ValueError("no"), None, "no", "")
    assert ws.handle_stimulus(unreadable) == [TaskErredMsg.match(key="y", exception_text="no")]
    assert states(ws) == {"y": "error"}


def test_a_paused_machine_begins_nothing_until_it_goes_on():
    ws = WorkerState()
    ws.handle_stimulus(compute("x"))
    assert ws.handle_stimulus(PauseEvent("p")) == []
    assert not ws.running
    assert ws.handle_stimulus(compute("y"), compute("z", who_has={"a": [NEAR]})) == []
    assert states(ws) == {"x": "executing", "y": "ready", "z": "waiting", "a": "fetch"}
    assert ws.handle_stimulus(success("x")) == [TaskFinishedMsg.match(key="x")]
    fetches = [GatherDep("u", NEAR, {"a"}, 1)]
    assert ws.handle_stimulus(UnpauseEvent("u")) == [*fetches, Execute("u", "y")]


@pytest.mark.parametrize("stimulus", [FindMissingEvent("f"), GatherDepBusyEvent("b", NEAR, 1)])
def test_what_others_decide_is_refused_with_who_does(stimulus):
    ws = WorkerState()
    with pytest.raises(NotDecidedHere, match="takes no"):
        ws.handle_stimulus(stimulus)
    with pytest.raises(NotDecidedHere, match="actor"):
        ws.handle_stimulus(compute("x", actor=True))
    with pytest.raises(NotDecidedHere, match="plugins"):
        WorkerState(plugins={"x": object()})


def test_the_end_of_what_never_began_is_an_error():
    ws = WorkerState()
    with pytest.raises(InvalidTransition, match="'x' :: unknown->memory"):
        ws.handle_stimulus(success("x"))
    with pytest.raises(InvalidTransition):
        ws.handle_stimulus(GatherDepNetworkFailureEvent("cut", NEAR, 1))


def test_limits_of_fetches_hold_and_can_be_changed():
    ws = WorkerState(transfer_incoming_count_limit=1, transfer_message_bytes_limit=10)
    who_has = {"a": [NEAR], "b": [NEAR], "c": [FAR]}
    fetches = ws.handle_stimulus(AcquireReplicasEvent("s", who_has, dict.fromkeys(who_has, 6)))
    assert fetches == [GatherDep("s", NEAR, {"a"}, 6)]
    assert (ws.transfer_incoming_count, ws.transfer_incoming_bytes, ws.fetch_count) == (1, 6, 2)
    ws.transfer_incoming_count_limit, ws.transfer_message_bytes_limit = 2, 100
    assert len(ws.handle_stimulus(GatherDepSuccessEvent("t", NEAR, 6, {"a": 1}))) == 3


def test_nothing_is_left_of_what_was_freed_nor_of_what_was_never_known():
    state = WorkerState()
    kept = [len(getattr(state, name)) for name in ("_number_by_key", "_key_by_number")]
    for key in ("x", "y"):
        state.handle_stimulus(ComputeTaskEvent.dummy(key, stimulus_id="s"))
        state.handle_stimulus(ExecuteSuccessEvent.dummy(key, 1, stimulus_id="s"))
        state.handle_stimulus(FreeKeysEvent("s", [key]))
        for stranger in (
            FreeKeysEvent("s", ["a"]),
            RemoveReplicasEvent("s", ["b"]),
            CancelComputeEvent("s", "c"),
            StealRequestEvent("s", "d"),
        ):
            state.handle_stimulus(stranger)
    threads = state._threads
    left = [state._number_by_key, state._key_by_number, threads.demands, threads.priorities]
    assert [*map(len, left)] == [*kept, 0, 0]
    assert state.tasks == state.data == {}


def test_a_state_is_checked_pickled_and_told_as_json():
    ws = WorkerState()
    ws.handle_stimulus(compute("x"), UpdateDataEvent("put", {"y": 2}))
    again = pickle.loads(pickle.dumps(ws))
    assert (states(again), again.data) == ({"x": "executing", "y": "memory"}, {"y": 2})
    assert again.handle_stimulus(success("x"))
    told = recursive_to_dict(ws)
    assert told["tasks"]["y"]["state"] == "memory"
    assert told["data"] == {"y": None}
    assert [event["cls"] for event in told["stimulus_log"]] == [
        "ComputeTaskEvent",
        "UpdateDataEvent",
    ]
    assert [record[1] for record in ws.story("x")] == ["handed to the threads"]
    assert [event.stimulus_id for event in ws.stimulus_story(ws.tasks["x"])] == ["compute-x"]
    ws.tasks["x"].state = "memory"
    with pytest.raises(InvalidTaskState):
        ws.validate_state()


def test_events_survive_json_without_their_values():
    event = success("x", "a secret")
    told = recursive_to_dict(event.to_loggable(handled=3.5))
    assert (told["value"], told["handled"]) == (None, 3.5)
    again = StateMachineEvent.from_dict(told)
    assert (type(again), again.key, again.handled) == (ExecuteSuccessEvent, "x", 3.5)


def test_recommendations_merge_unless_they_contradict_each_other():
    x, y = TaskState("x"), TaskState("y")
    assert merge_recs_instructions(({x: "memory"}, [1]), ({y: "released"}, [2])) == (
        {x: "memory", y: "released"},
        [1, 2],
    )
    with pytest.raises(RecommendationsConflict):
        merge_recs_instructions(({x: "memory"}, []), ({x: "released"}, []))
