"""Calls to actors that the scheduler passes on, with nobody to pass them to."""

import asyncio
from types import SimpleNamespace

from shoal.ids import Key, RunId
from shoal.protocol.actors import CallActorThroughScheduler
from shoal.protocol.answers import Refusal
from shoal.protocol.messages import Failure
from shoal.scheduler.shell.operations.actors import on_call_actor_through_scheduler


def test_what_the_making_of_an_actor_raised_is_passed_on_unread():
    """It may be of a class that the scheduler lacks, or that does harm when it is loaded."""
    failure = Failure(b"no pickle, so that it can't be read here", "Boom: no")
    task = SimpleNamespace(failure=failure, who_has=None)
    state = SimpleNamespace(tasks={"x": task})
    host = SimpleNamespace(machine=SimpleNamespace(state=state))
    call = CallActorThroughScheduler(7, Key("x"), RunId(0), "go", b"")
    reply, buffers = asyncio.run(on_call_actor_through_scheduler(host, call))
    assert type(reply) is Refusal
    assert (reply.request, buffers) == (7, [])
    assert reply.failure is failure
