"""A process that was stopped keeps its connections, and says nothing on them."""

import os
import signal
import threading

import dask
import pytest

from shoal import Client
from shoal.errors import ActorLost

NEVER = threading.Event()


class Waiter:
    def process(self):
        return os.getpid()

    def wait_here(self):
        NEVER.wait()


def outcome_of_waiting(waiter, address):
    """What a task that calls the actor of `address` is told, where it calls it."""
    from shoal import Actor

    try:
        Actor(Waiter, address, waiter).wait_here().result()
    except ActorLost as error:
        return str(error)


def test_nobody_waits_for_actors_of_a_stopped_worker_once_it_is_given_up():
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "2s"}),
        Client(processes=True, n_workers=2, threads_per_worker=1) as client,
    ):
        waiter = client.submit(Waiter, actor=True, key="waiter").result()
        address, pid = waiter._address, waiter.process().result()
        (other,) = [there for there in client.nthreads() if there != address]
        call = waiter.wait_here()
        # It is told where the actor is and does not depend on it, or it would fail with it.
        task = client.submit(outcome_of_waiting, "waiter", address, workers=[other])
        assert client.submit(abs, -1, workers=[other]).result(timeout=10) == 1  # so the task waits
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ActorLost, match="it was silent for"):
                call.result(timeout=10)
            assert "it was silent for" in task.result(timeout=10)
        finally:
            os.kill(pid, signal.SIGCONT)
