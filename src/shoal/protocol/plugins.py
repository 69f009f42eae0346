"""Plugins on their way: from a client to the scheduler, to workers, and by them to their nannies.

Free tags: none; 256 to 259 are of `slots`.
"""

from typing import Final

from shoal.protocol.messages import Failure, Message, Part
from shoal.protocol.running import Outcome
from shoal.protocol.subject import UNANSWERED, Subject

RESTARTS: Final = b"restarts"
"""What a nanny answers whose worker is to be started anew: the scheduler sends it away then."""


class Plugin(Part, frozen=True):
    """A plugin, which is code: opened where it is to live."""

    name: str
    payload: bytes  # pickled
    idempotent: bool = False  # another one of its name changes nothing


class RegisterPlugin(Message, frozen=True, tag=250):
    """Have a plugin live in the scheduler, or in all workers or nannies, those to come too.

    Answered by what came of it at each worker that is there.
    """

    request: int
    kind: str  # scheduler, worker or nanny
    plugin: Plugin


class UnregisterPlugin(Message, frozen=True, tag=251):
    """Remove a plugin again; answered as RegisterPlugin."""

    request: int
    kind: str
    name: str


class AddPlugins(Message, frozen=True, tag=252):
    """Set these up; answered by what those have raised that could not be, by name."""

    request: int
    plugins: list[Plugin]


class RemovePlugin(Message, frozen=True, tag=253):
    """Tear a plugin down, if it is there; answered by what it has raised."""

    request: int
    name: str


class PluginsComing(Message, frozen=True, tag=255):
    """The worker is heard of, and welcomed once what plugins have to do is done, however long."""


class AskNanny(Message, frozen=True, tag=254):
    """Have this worker's nanny do something; see `nanny/plugins.py` for what it can do."""

    request: int
    operation: str
    argument: bytes = b""


SUBJECT = Subject(
    from_client={
        RegisterPlugin: dict[str, Outcome],
        UnregisterPlugin: dict[str, Outcome],
    },
    to_worker={
        AddPlugins: dict[str, Failure],
        RemovePlugin: Failure | None,
        AskNanny: Outcome,
        PluginsComing: UNANSWERED,
    },
)
