"""What users say, brought into one form; and errors that travel."""

import json
import pickle

import dask
import pytest

from shoal.client import errors
from shoal.client.annotations import options_by_key
from shoal.client.computing import in_shape_of, replaced
from shoal.client.future import Future
from shoal.client.options import (
    connect_seconds,
    find_target,
    keyring_of,
    task_options,
)
from shoal.errors import (
    NoCopies,
    UnsupportedOption,
    WithoutNanny,
    WorkersNotBack,
    WorkersNotRestarted,
)
from shoal.ids import Key
from shoal.protocol.handshake import CLIENT, Keyring
from shoal.protocol.messages import TaskOptions
from shoal.protocol.operations import worker_names


class Cluster:
    scheduler_address = "tcp://10.0.0.1:8786"
    token = b"t"
    status = "running"


def test_options_that_say_nothing_are_none():
    assert task_options() is None
    assert task_options(retries=0, allow_other_workers=False) is None
    assert task_options(allow_other_workers=True) is None  # than those that were not named
    assert task_options(workers=[]) is not None


def test_workers_are_named_in_many_ways():
    assert worker_names("a") == ["a"]
    assert worker_names(3) == ["3"]
    assert worker_names({"b", "a"}) == ["a", "b"]
    assert worker_names(None) == []
    with pytest.raises(TypeError, match="not dict"):
        worker_names({"a": 1})


def test_the_scheduler_is_found_by_text_cluster_file_or_setting(tmp_path):
    assert find_target("h:1", None, 1).address == "h:1"
    cluster = Cluster()
    assert find_target(cluster, None, 1) == ("tcp://10.0.0.1:8786", b"t", cluster)
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": "tcp://a:2"}))
    assert find_target(None, str(path), 1).address == "tcp://a:2"
    with dask.config.set({"scheduler-address": "tcp://b:3"}):
        assert find_target(None, None, 1).address == "tcp://b:3"
    assert find_target(None, None, 1) is None


def test_what_is_no_scheduler_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"not int|got .*int"):
        find_target(5, None, 1)
    closed = Cluster()
    closed.status = "closed"
    with pytest.raises(RuntimeError, match="closed"):
        find_target(closed, None, 1)
    broken = tmp_path / "scheduler.json"
    broken.write_text("{")
    with pytest.raises(TimeoutError, match=r"scheduler\.json"):
        find_target(None, str(broken), 0.02)


def test_keys_come_from_whatever_holds_a_token():
    expected = Keyring.from_token(b"t").key(CLIENT)
    for security in (b"t", Keyring.from_token(b"t"), Cluster()):
        assert keyring_of(security, None).key(CLIENT) == expected
    assert keyring_of(None, b"t").key(CLIENT) == expected
    assert keyring_of(None, None) is None
    with pytest.raises(TypeError, match=r"not int|got .*int"):
        keyring_of(5, None)
    with pytest.raises(UnsupportedOption, match="certificates"):
        keyring_of({"tls_ca_file": "ca.pem"}, None)


def test_timeouts_have_units():
    assert connect_seconds("500ms") == 0.5
    assert connect_seconds(None) == 30


def test_results_take_the_places_of_keys_and_futures():
    assert in_shape_of([["a"], ("b", 0)], {"a": 1, ("b", 0): 2}) == [[1], 2]
    x, y = Future("x"), Future("y")
    values = {x: 1, y: "skipped"}
    shapes = {"k": [x, (y, {x})], "n": 5}
    assert replaced(shapes, values.get, "skipped") == {"k": [1, (None, {1})], "n": 5}
    assert replaced([x, y], values.get, "skipped") == [1]
    assert replaced([x, [y]], values.get, "skipped") == [1, [None]]
    assert replaced(y, values.get, "skipped") is None


@pytest.mark.parametrize(
    "error",
    [
        errors.CyclicGraph(["a", "b"]),
        errors.MissingKey("x", "y"),
        errors.MissingKey("x"),
        errors.UnpicklableTask("x", "no"),
        errors.UnpicklableValue("lock", "x", "no"),
        errors.UnpicklableClient(),
        errors.NoClient("waiting"),
        errors.NoClient(why="This is a task: submit from elsewhere."),
        errors.BlockingCall(),
        errors.ClientClosed("c", "closed"),
        errors.ForeignFuture("x"),
        errors.UnboundFuture("x"),
        errors.NoWorkers("scatter to", 3.0),
        errors.WorkersLate(3, 1, 2.0),
        WorkersNotBack(3, 1, 2, 2.0),
        WorkersNotRestarted(["a"], 3, 2.0),
        WithoutNanny(["a"]),
        NoCopies(0),
        errors.ResultUnreachable("x", ["a"], "no"),
        errors.SchedulerFileLate("f", 1.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_and_say_what_to_do(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert len(str(error)) > 40


def test_that_it_makes_an_actor_is_an_option_by_itself():
    assert task_options(actor=True) == TaskOptions(actor=True)
    assert task_options(actor=False) is None


@pytest.mark.parametrize(
    ("option", "kind", "words"),
    [
        ({"priority": "high"}, TypeError, "priority is a number.*'high'"),
        ({"priority": float("nan")}, ValueError, "priority is a number.*nan"),
        ({"retries": -1}, ValueError, "retries is a whole number from 0 on, not -1"),
        ({"retries": 1.5}, TypeError, "retries is a whole number from 0 on, not 1.5"),
        ({"retries": "2"}, TypeError, "retries is a whole number from 0 on, not '2'"),
    ],
)
def test_an_option_that_makes_no_sense_is_told_with_what_is_allowed(option, kind, words):
    with pytest.raises(kind, match=words):
        task_options(**option)


def test_resources_are_amounts_and_nothing_of_something_is_left_out():
    options = task_options(resources={"GPU": 1, "net": 0.5, "disk": 0})
    assert options.resources == {"GPU": 1.0, "net": 0.5}
    assert task_options(resources={}) is None
    for wrong in ({"GPU": "1"}, {"GPU": True}, ["GPU"]):
        with pytest.raises(TypeError, match="amount"):
            task_options(resources=wrong)
    for wrong in ({"GPU": -1}, {"GPU": float("inf")}, {"GPU": float("nan")}):
        with pytest.raises(ValueError, match="from 0 on"):
            task_options(resources=wrong)


def test_resources_may_be_annotated():
    with dask.annotate(resources={"GPU": 1}):
        assert task_options().resources == {"GPU": 1.0}


def test_an_annotation_says_which_executor_of_a_worker_runs_a_task():
    with dask.annotate(executor="gpu"):
        assert task_options() == TaskOptions(executor="gpu")
    with dask.annotate(executor="default"):
        assert task_options() == TaskOptions()
    with dask.annotate(executor=3), pytest.raises(TypeError, match="name of one of the worker's"):
        task_options()


def test_what_a_task_submits_says_so():
    assert task_options(inside="x") == TaskOptions(inside=Key("x"))
    assert options_by_key({"y": {"retries": 1}}, TaskOptions(inside=Key("x"))) == {
        "y": TaskOptions(inside=Key("x"), retries=1)
    }
