"""What a process is told before it becomes a worker: its environment and its configuration."""

import os
import threading
from unittest import mock

import dask
import pytest

from shoal.nanny.document import document_of, limit_native_threads, worker_environ


def test_the_user_s_variables_win_over_settings_and_those_given_over_both(monkeypatch):
    monkeypatch.setenv("OURS", "user")
    monkeypatch.setenv("GIVEN", "user")
    said = {"OURS": 1, "GIVEN": 2, "ONLY": 3, "NONE": None}
    with dask.config.set(
        {"distributed.nanny.environ": said, "distributed.nanny.pre-spawn-environ": {"PRE": 4}}
    ):
        environ = worker_environ({"GIVEN": 5})
    assert {name: environ[name] for name in ("OURS", "GIVEN", "ONLY", "PRE")} == {
        "OURS": "user", "GIVEN": "5", "ONLY": "3", "PRE": "4",
    }  # fmt: skip
    assert "NONE" not in environ


def test_a_worker_without_a_nanny_sets_for_itself_what_the_user_has_not_set():
    with mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "7", "NUMEXPR_NUM_THREADS": ""}):
        os.environ.pop("OPENBLAS_NUM_THREADS", None)
        limit_native_threads()
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
        assert [os.environ[name] for name in names] == ["7", "1", ""]


def test_a_variable_that_is_none_is_taken_away(monkeypatch):
    monkeypatch.setenv("OURS", "user")
    assert "OURS" in worker_environ()
    assert "OURS" not in worker_environ({"OURS": None})


@pytest.mark.parametrize(
    "given", [{"a.b": 2, "a.c": 3}, {"a": {"b": 2, "c": 3}}], ids=["dotted", "nested"]
)
def test_a_configuration_that_is_given_lies_over_ours(given):
    with dask.config.set({"a": {"b": 1, "d": 4}}):
        ours = document_of("worker", b"", {}, log_level=0)["config"]
        told = document_of("worker", b"", {}, log_level=0, config=given)["config"]
        assert dask.config.get("a") == {"b": 1, "d": 4}
    assert ours["a"] == {"b": 1, "d": 4}
    assert told["a"] == {"b": 2, "c": 3, "d": 4}
    assert told.keys() >= ours.keys()


@pytest.mark.parametrize("given", [None, {"a": {"b": 2, "lock": threading.Lock()}}])
def test_what_of_a_configuration_belongs_to_this_process_stays_here(given):
    """Such as a pool of threads, which is how dask's own schedulers are given one."""
    with dask.config.set({"pool": threading.Lock(), "a": {"lock": threading.Lock()}}):
        told = document_of("worker", b"", {}, log_level=0, config=given)["config"]
    assert "pool" not in told
    assert told["a"] == ({} if given is None else {"b": 2})
