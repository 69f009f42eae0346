"""What goes to another process is plain, and the rest is either left behind or refused."""

import json
import os
import pickle
from inspect import signature

import dask
import pytest

from shoal.comms import ListenError
from shoal.deploy.errors import ClusterClosed, UnknownOptions, WrongWith
from shoal.deploy.options import HARMLESS_OPTIONS, LATER_OPTIONS, WORKER_OPTIONS
from shoal.deploy.sites import listening_socket
from shoal.nanny.death import Death
from shoal.nanny.document import plain_part_of, require_plain, worker_environ
from shoal.nanny.errors import NotPlain, ProcessDied, ProcessLate
from shoal.observe.facts import FactsOfScheduler
from shoal.worker.shell.service import Worker


def test_a_configuration_loses_only_what_belongs_to_this_process() -> None:
    found = plain_part_of({"a": {"b": [1, "x", None, len]}, "get": len, "ok": (1.5, True)})
    assert found == {"a": {"b": [1, "x", None]}, "ok": [1.5, True]}
    assert json.loads(json.dumps(found)) == found


def test_an_option_that_is_an_object_is_refused_by_name() -> None:
    assert require_plain("", {"resources": {"GPU": 2}}) == {"resources": {"GPU": 2}}
    with pytest.raises(NotPlain, match=r"scheduler_kwargs\['sock'\] is a object.*processes=False"):
        require_plain("scheduler_kwargs", {"sock": object()})


def test_libraries_of_workers_start_no_threads_of_their_own_unless_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    with dask.config.set({"distributed.nanny.environ": {"COLOUR": 3}}):
        environ = worker_environ()
    assert environ["OMP_NUM_THREADS"] == "1"
    assert environ["MKL_NUM_THREADS"] == "7"
    assert environ["COLOUR"] == "3"
    assert environ["PATH"] == os.environ["PATH"]


def test_workers_agree_on_the_hash_of_a_text_whatever_process_started_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    assert worker_environ()["PYTHONHASHSEED"].isdigit()
    monkeypatch.setenv("PYTHONHASHSEED", "17")
    assert worker_environ()["PYTHONHASHSEED"] == "17"


def test_a_port_that_is_taken_is_an_error_of_the_parent() -> None:
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"127.0.0.1:{port}.*in use"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize(
    "error",
    [
        ProcessDied("worker 0", Death(pid=7, exit_code=3, last_lines="Fatal Python error")),
        ProcessLate("the scheduler", 3.0, "still importing"),
        ClusterClosed("abc", "closed"),
        WrongWith("LocalCluster", asynchronous=True),
        WrongWith("LocalCluster", asynchronous=False),
        UnknownOptions(["nworkers"], ["n_workers"]),
        NotPlain("resources", "set"),
    ],
)
def test_an_error_says_the_same_after_it_has_travelled(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert len(str(error)) > 40


def test_facts_add_up() -> None:
    facts = FactsOfScheduler.of(
        "S",
        "tcp://h:1",
        12.0,
        {},
        [
            {"address": "tcp://h:2", "nthreads": 2, "memory_limit": 10},
            {"address": "tcp://h:3", "nthreads": 3, "memory_limit": 20},
        ],
    )
    assert facts["total_threads"] == 5
    assert facts["total_memory"] == 30
    assert list(facts["workers"]) == ["tcp://h:2", "tcp://h:3"]


def test_workers_have_every_option_that_is_passed_on_to_them() -> None:
    assert set(signature(Worker.__init__).parameters) >= WORKER_OPTIONS
    assert not WORKER_OPTIONS & (HARMLESS_OPTIONS | set(LATER_OPTIONS))


def test_a_process_that_a_signal_ended_at_its_start_is_no_riddle_of_the_environment() -> None:
    killed = str(ProcessDied("worker 1", Death(pid=7, exit_code=-9, signal="SIGKILL")))
    assert "worker 1 was killed by SIGKILL" in killed
    assert "before it was ready" in killed
    assert "environment" not in killed
    assert "environment" in str(ProcessDied("worker 1", Death(pid=7, exit_code=1)))
