"""Operations of the scheduler by their names, and those of other services, for clients."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from shoal.observe.handling import seal, value_of
from shoal.protocol.named import CallNamed
from shoal.protocol.payload import dump_function
from shoal.protocol.running import Outcome

PASSED_ON: Final = ("broadcast", "proxy")
"""Operations whose message is for workers: the scheduler does not unpickle it."""


class NamedCalls:
    """`client.scheduler.<operation>(argument=value)`: what the scheduler answers to by name.

    Awaited where the client is asynchronous, or on its loop; elsewhere it waits.  What operations
    there are, `await client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.handlers))`
    says, and so does the error of one that is not there.
    """

    def __init__(self, client: Any) -> None:
        """`client`: the face that the user holds."""
        self._client = client

    def __repr__(self) -> str:
        return f"<operations of the scheduler at {self.address}>"

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        return str(self._client.session.address)

    addr = address

    async def close_rpc(self) -> None:
        """Nothing happens: these calls go by the client's own connection."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        client = self._client

        def call(**arguments: Any) -> Any:
            work = _call(client.session, name, arguments)
            return client.hand_over(work) if client.is_blocking else work

        call.__name__ = call.__qualname__ = name
        return call


async def _call(session: Any, name: str, arguments: dict[str, Any]) -> Any:
    """What the operation returned.

    Raises:
        OperationUnknown, OperationBlocked: there is none, or it is refused.
        CommClosedError: the connection ended.
        BaseException: what it has raised.
        Exception: an argument can't be pickled.
    """
    about_the_call = ("serializers", "deserializers", "reply", "close")
    given = {key: value for key, value in arguments.items() if key not in about_the_call}
    if name in PASSED_ON and isinstance(given.get("msg"), Mapping):
        given["msg"] = seal(given["msg"])
    packed = dump_function(given)
    outcome: Outcome = await session.call(lambda request: CallNamed(request, name, packed))
    if outcome.failure is None:
        outcome = Outcome(session.families.guard(outcome.value))
    return next(value_of(outcome))


class WaitingRpc:
    """One service, for a client that waits."""

    def __init__(self, client: Any, rpc: Any) -> None:
        self._client, self._rpc = client, rpc

    def __repr__(self) -> str:
        return repr(self._rpc)

    @property
    def address(self) -> str:
        """Where it is."""
        return str(self._rpc.address)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self._rpc, name)

        def call(**arguments: Any) -> Any:
            return self._client.hand_over(_made_there(method, arguments))

        return call


async def _made_there(method: Any, arguments: dict[str, Any]) -> Any:
    work: Coroutine[Any, Any, Any] = method(**arguments)
    return await work


class WaitingPool:
    """`client.rpc(address).<operation>()` for a client that waits."""

    def __init__(self, client: Any, pool: Any) -> None:
        self._client, self._pool = client, pool

    def __repr__(self) -> str:
        return repr(self._pool)

    def __call__(self, *args: Any, **kwargs: Any) -> WaitingRpc:
        return WaitingRpc(self._client, self._pool(*args, **kwargs))
