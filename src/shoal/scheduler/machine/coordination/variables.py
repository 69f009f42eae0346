"""Variables: one value each, which all may look at and replace."""

from collections.abc import Iterator

from shoal.ids import Key
from shoal.protocol.answers import answer
from shoal.protocol.coordination import (
    DeleteVariable,
    EndGet,
    GetVariable,
    SetVariable,
)
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_text
from shoal.scheduler.machine.coordination.items import keep_again, let_go, new_item, shared
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.exchanges import Item, Variable
from shoal.scheduler.model.locks import Claim, Standing
from shoal.scheduler.model.state import SchedulerState


def keeper_of(name: str) -> str:
    """In whose name the futures in a variable are kept."""
    return f"variable-{to_text(Key(name))}"


def on_set_variable(core: Core, client: Client, call: SetVariable) -> None:
    """The value takes the place of what was there; whoever waited for one gets it."""
    item = new_item(core, keeper_of(call.name), call, client)
    if item is None:
        return
    variable = _made(core, call.name)
    before, variable.item = variable.item, item
    if before is not None:
        let_go(core, keeper_of(call.name), before.wants)
    waiting, variable.waiting = variable.waiting, {}
    for claim, standing in waiting.items():
        _hand_over(core, call.name, variable, item, claim, standing.request)
    core.to_client(client, answer(call.request, None))


def on_get_variable(core: Core, client: Client, call: GetVariable) -> None:
    """Answer now if there is a value, else once there is.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended.
    """
    variable = _made(core, call.name)
    claim = Claim(client, call.claim)
    if claim in variable.waiting or claim in variable.taken:
        raise ProtocolError("GetVariable uses the number of a claim that has not ended")
    if variable.item is None:
        variable.waiting[claim] = Standing(core.now, call.by, call.request)
    else:
        _hand_over(core, call.name, variable, variable.item, claim, call.request)


def on_end_get(core: Core, client: Client, message: EndGet) -> None:
    """The futures were received, or nobody waits any more."""
    variable = core.state.variables.get(message.name)
    if variable is not None:
        _end(core, message.name, variable, Claim(client, message.claim))


def on_delete_variable(core: Core, client: Client, message: DeleteVariable) -> None:
    """It has no value; whoever waits for one goes on waiting."""
    variable = core.state.variables.get(message.name)
    if variable is not None and variable.item is not None:
        let_go(core, keeper_of(message.name), variable.item.wants)
        variable.item = None
        _forget_if_idle(core, message.name, variable)


def drop_claims(core: Core, client: Client) -> None:
    """The client has gone: it waits no more; values stay.  Cost: O(variables + claims)."""
    for name, variable in list(core.state.variables.items()):
        claims = (*variable.waiting, *variable.taken)
        for claim in [claim for claim in claims if claim.client is client]:
            _end(core, name, variable, claim)


def have_reasons(state: SchedulerState) -> Iterator[str]:
    """A variable that is known has a value or is waited for, by clients that are there."""
    for name, variable in state.variables.items():
        if variable.item is not None and variable.waiting:
            yield f"the variable {name!r} has a value, and is waited for"
        if variable.item is None and not variable.waiting and not variable.taken:
            yield f"the variable {name!r} is known, and nobody has to do with it"
        for claim in (*variable.waiting, *variable.taken):
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the variable {name!r} is claimed by {claim.client}, which has gone"


def _made(core: Core, name: str) -> Variable:
    variable = core.state.variables.get(name)
    if variable is None:
        variable = core.state.variables[name] = Variable()
    return variable


def _hand_over(
    core: Core, name: str, variable: Variable, item: Item, claim: Claim, request: int
) -> None:
    """Its futures are kept once more, until the taker wants them himself."""
    if item.wants:
        variable.taken[claim] = keep_again(core, keeper_of(name), item.wants)
    core.to_client(claim.client, answer(request, shared(item)))


def _end(core: Core, name: str, variable: Variable, claim: Claim) -> None:
    """A wait that ends unanswered is answered by nothing that anybody hears."""
    variable.waiting.pop(claim, None)
    let_go(core, keeper_of(name), variable.taken.pop(claim, ()))
    _forget_if_idle(core, name, variable)


def _forget_if_idle(core: Core, name: str, variable: Variable) -> None:
    if variable.item is None and not variable.waiting and not variable.taken:
        del core.state.variables[name]


HANDLERS = Handlers(
    from_client={
        SetVariable: on_set_variable,
        GetVariable: on_get_variable,
        EndGet: on_end_get,
        DeleteVariable: on_delete_variable,
    },
    client_gone=drop_claims,
    invariant=have_reasons,
)
