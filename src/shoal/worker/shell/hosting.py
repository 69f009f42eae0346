"""The part of a worker that knows of actors; what runs them is loaded once there is one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import NoSuchActor
from shoal.ids import Key, RunId
from shoal.protocol.actors import CallActor
from shoal.protocol.answers import Refusal
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_text

if TYPE_CHECKING:
    from shoal.worker.shell.actors import Actors


class Hosting:
    """Actors of one worker: made by tasks, called by peers and clients."""

    address: str
    _actors: Actors | None = None

    @property
    def actors(self) -> Mapping[object, object]:
        """The objects themselves, by the keys that users know."""
        return {} if self._actors is None else self._actors.by_key()

    def host_actor(self, task: Any, instance: object, proxy: object) -> None:
        """A task has made an actor; from its thread.

        Args:
            task: the one that runs.
            proxy: stands for the actor from now on; it lives as long as this is kept.
        """
        actors = self._actors
        if actors is None:
            made = import_module("shoal.worker.shell.actors").Actors(self)
            actors = self.__dict__.setdefault("_actors", made)
        actors.host(task, instance, proxy)

    def actor_nearby(self, key: Key, run: RunId) -> Any:
        """The actor, if it lives here and it is an actor that asks, in its thread; else None.

        They need not wait for each other then, and can't wait for ever.
        """
        return None if self._actors is None else self._actors.nearby(key, run)

    def on_actor_call(self, connection: Any, message: Any, buffers: list[Any]) -> None:
        """Somebody calls an actor, or reads from it."""
        if self._actors is not None and isinstance(message, CallActor):
            self._actors.on_call_actor(connection, message, buffers)
        elif self._actors is not None:
            self._actors.on_read_actor(connection, message)
        elif not connection.closed:
            error = NoSuchActor(to_text(message.key), self.address)
            failure = to_failure(error, message.key, self.address)
            connection.send([Refusal(message.request, failure)])
