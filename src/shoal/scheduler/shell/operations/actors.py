"""Calls to actors that go through the scheduler, as their client can't reach the worker."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from shoal.errors import ActorLost, NoSuchActor
from shoal.protocol.actors import ActorReply, CallActor, CallActorThroughScheduler, ReadActor
from shoal.protocol.answers import Refusal
from shoal.protocol.keys import to_text
from shoal.protocol.messages import Message
from shoal.scheduler.shell.host import Host, Operations


async def on_call_actor_through_scheduler(
    host: Host, call: CallActorThroughScheduler
) -> tuple[Message, list[Any]]:
    """Pass a call on to the actor's worker, and its reply back."""
    task = host.machine.state.tasks.get(call.key)
    if task is not None and task.failure is not None:
        return Refusal(call.request, task.failure), []  # it may be of the user's making
    if task is None or not task.who_has:
        raise NoSuchActor(to_text(call.key), "any worker")
    address = task.who_has[0].address
    if call.arguments is None:
        make: Any = partial(ReadActor, key=call.key, run=call.run, name=call.name)
    else:
        make = partial(
            CallActor,
            key=call.key,
            run=call.run,
            method=call.name,
            arguments=call.arguments,
            separate_thread=call.separate_thread,
        )
    try:
        reply, buffers = await host.exchange.ask(address, make)
    except OSError as error:
        raise ActorLost(to_text(call.key), address, str(error)) from error
    if isinstance(reply, Refusal):
        return Refusal(call.request, reply.failure), []
    return ActorReply(call.request, reply.value), buffers


OPERATIONS: Final[Operations] = {
    CallActorThroughScheduler: on_call_actor_through_scheduler,
}
