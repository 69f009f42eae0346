"""`distributed.comm.inproc`: comms within a process; messages go by reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shoal.comms.addresses import INPROC
from shoal.comms.errors import CommClosedError
from shoal.compat.addresses import new_inproc_location
from shoal.compat.comm.backend import Backend
from shoal.compat.comm.carried import Carried, CarriedConnector, CarriedListener
from shoal.compat.comm.core import Comm
from shoal.compat.functions import get_ip
from shoal.compat.serialising.messages import nested_deserialize


class Names:
    """Makes names for listeners of this process, which addresses show to others."""

    @property
    def ip(self) -> str:
        """This host."""
        return get_ip()

    def new_address(self) -> str:
        """A location that nobody has had."""
        return new_inproc_location()


global_manager: Final = Names()


def new_address() -> str:
    """An address that nobody has had."""
    return f"inproc://{global_manager.new_address()}"


class InProc(Carried):
    """A comm within a process; both ends have the same objects."""

    async def read(self, deserializers: Any = None) -> Any:
        """See `Comm.read`; `deserializers` mean nothing here."""
        message = await self._mailbox.take()
        return nested_deserialize(message) if self.deserialize else message

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = None) -> int:
        """See `Comm.write`; nothing is serialised."""
        if self.closed():
            raise CommClosedError.already(self.peer_address)
        await self._mailbox.hand(msg)
        return 1

    @property
    def same_host(self) -> bool:
        """True."""
        return True


class InProcConnector(CarriedConnector):
    """Dials within the process."""

    prefix = "inproc://"
    comm_class = InProc
    refuses_encryption = False  # nothing leaves the process


class InProcListener(CarriedListener):
    """Listens within the process, under a name."""

    prefix = "inproc://"
    comm_class = InProc
    refuses_encryption = False  # nothing leaves the process

    async def _bind(self) -> dict[str, Any]:
        return {"address": f"inproc://{self._asked or global_manager.new_address()}"}


class InProcBackend(Backend):
    """Carries ``inproc``."""

    stands_on = INPROC

    def get_connector(self) -> Any:
        """See `Backend.get_connector`."""
        return InProcConnector()

    def get_listener(
        self,
        loc: str,
        handle_comm: Callable[[Comm], Any],
        deserialize: bool,
        **connection_args: Any,
    ) -> Any:
        """See `Backend.get_listener`."""
        return InProcListener(loc, handle_comm, deserialize, **connection_args)

    def get_address_host(self, loc: str) -> str:
        """See `Backend.get_address_host`."""
        return global_manager.ip

    def resolve_address(self, loc: str) -> str:
        """See `Backend.resolve_address`."""
        return loc

    def get_local_address_for(self, loc: str) -> str:
        """See `Backend.get_local_address_for`."""
        return global_manager.new_address()
