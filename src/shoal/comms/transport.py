"""What a connection is, whatever carries it.

Everything here but `send` is called on one event loop, the connection's own.  Messages arrive by
callback, because a task and a wake-up for each frame would cost more than the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

if TYPE_CHECKING:
    from typing_extensions import Buffer

OnMessages: TypeAlias = Callable[[list[msgspec.Struct], list[Any]], None]
"""Called with the messages of all frames that arrived together, or with the messages and the
buffers of one frame that has buffers.  If it raises, the connection is aborted."""
OnClosed: TypeAlias = Callable[[Exception | None], None]
"""Called exactly once, last of all.  None means that nothing was cut in two: closed by us, or ended
by the peer between frames, which is also how the clean end and the death of its process look."""


class Connection(Protocol):
    """An ordered, authenticated way to one peer."""

    @property
    def peer_address(self) -> str:
        """The address that was dialled, or one that tells whom we accepted."""

    @property
    def local_address(self) -> str:
        """Our own end."""

    @property
    def scheme(self) -> str:
        """What really carries it: ``unix`` also where ``tcp`` was dialled on the same host."""

    @property
    def role(self) -> str:
        """What the peer has proved: ``client`` or ``worker``; ``server`` if we dialled."""

    @property
    def closed(self) -> bool:
        """Whether it ended, or was told to."""

    @property
    def unsent_nbytes(self) -> int:
        """Bytes accepted by `send` and not yet by the system."""

    @property
    def received_nbytes(self) -> int:
        """Bytes that have come so far, of incomplete messages as well; 0: they are not counted."""

    def start(self, on_messages: OnMessages, on_closed: OnClosed) -> None:
        """Begin to receive.  To be called once; neither callback is called from inside it.

        Whoever hands a socket's connection on to somebody else, in the midst of what it has
        received, calls it again: all that follows is for those.

        Until then nothing is read, so neither messages nor the end of the peer are noticed.
        """

    def send(self, messages: Sequence[msgspec.Struct]) -> None:
        """Send one frame with `messages`: now if the system takes it, else as soon as it does.

        From any thread; frames of one thread keep their order.  Never blocks, and nothing is held
        back for a timer.  After the peer was lost and before `on_closed` has said so, messages are
        dropped in silence.

        Raises:
            CommClosedError: after `close`, `abort` or `on_closed`.
            FrameTooLarge: the messages exceed what a frame may hold.
        """

    def send_with_buffers(self, message: msgspec.Struct, buffers: Sequence[Buffer]) -> None:
        """Send one frame with `message` and `buffers`, which are not copied.

        They must be contiguous and stay unchanged until `unsent_nbytes` is 0.  Raises as `send`.
        """

    def close(self) -> None:
        """Send what is queued, then end; with a deadline.  Nothing is received any more."""

    def abort(self) -> None:
        """End at once; what is queued is lost."""

    async def drain(self) -> None:
        """Wait until little is unsent, or the connection has ended."""

    async def wait_closed(self) -> None:
        """Wait until `on_closed` was called, or would have been if there were one."""


OnConnection: TypeAlias = Callable[[Connection], None]
"""Called with each peer that was let in; it must `start` the connection, now or later."""


class Listener(Protocol):
    """Accepts connections at an address until closed; those accepted live on."""

    @property
    def address(self) -> str:
        """Where others can reach it: with the real port, and never a wildcard."""

    def close(self) -> None:
        """Accept nobody any more, and drop whoever has not been let in yet."""

    async def wait_closed(self) -> None:
        """Wait until every descriptor of the listener is closed."""
