"""Whether what comes from a peer may come compressed: as it is set, and never on one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal import config
from shoal.comms.addresses import INPROC, UNIX, is_own_host, parse_address
from shoal.comms.transport import Connection

if TYPE_CHECKING:
    from shoal.protocol.compression import Effort


def accepted_compressions() -> list[str]:
    """What may be asked for, the best first; [] if nothing is to be compressed.

    Raises:
        SettingError: what is set is not installed.
    """
    wanted = config.read(config.Comm).compression
    if wanted is None:
        return []
    from shoal.protocol.compression import accepted  # 1.5 ms that others don't spend

    try:
        return accepted(wanted)
    except ImportError as error:
        raise config.SettingError(
            config.full_name_of("comm.compression"),
            f"it is {wanted!r}, and that is not installed ({error})",
            "Install it (pip install lz4 zstandard), or say 'auto', which takes what is there.",
        ) from error


def effort() -> Effort:
    """How hard is tried, as it is set."""
    from shoal.protocol.compression import Effort

    settings = config.read(config.Comm)
    return Effort(settings.zstd_level, settings.zstd_threads)


def is_on_another_machine(connection: Connection) -> bool:
    """Whether a network is between the two ends."""
    if connection.scheme in (UNIX, INPROC):
        return False
    return not is_own_host(parse_address(connection.peer_address).host)
