"""A blocking face for an asynchronous client, for tasks of a worker that lives on the same loop.

Where scheduler, workers and client are on one loop, as in many tests, tasks run in threads beside
it and have the user's own client, in the form in which they can use it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from shoal.client.blocking import LoopThread

_making: Final = threading.Lock()
_face_by_client: Final[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()


def blocking_face(client: Any) -> Any:
    """The blocking client that has the session of an asynchronous one; the same for all callers.

    It waits for the loop of that one, and is closed with it.
    """
    with _making:
        face = _face_by_client.get(client)
        if face is None:
            twin = object.__new__(type(client))  # which makes futures for the face
            twin.__dict__.update(client.__dict__)
            kind = import_module("shoal.client.client").Client  # which knows this module, not it it
            face = _face_by_client[client] = kind.around(twin, OthersLoop(client.loop))
        return face


class OthersLoop(LoopThread):
    """A loop that somebody else runs and ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<OthersLoop {'alive' if self.is_alive else 'ended'}>"

    @property
    def is_alive(self) -> bool:
        """Whether the loop runs; it does not in a child of a fork."""
        return self.loop.is_running() and self._pid == os.getpid()

    def release(self) -> None:
        """Whoever runs it ends it."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody can keep it from ending."""
        yield
