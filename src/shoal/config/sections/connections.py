"""Settings of connections and their certificates."""

from typing import Annotated, ClassVar

from shoal.config.base import Positive, Settings
from shoal.units import GIB


class Comm(Settings, frozen=True, kw_only=True):
    """Connections between processes."""

    path: ClassVar[str] = "comm"

    connect_seconds: Annotated[float, Positive] = 30.0
    """Deadline for resolving, connecting and the handshake together."""

    handshake_seconds: Annotated[float, Positive] = 5.0
    """How long a stranger may take to say who they are."""

    silence_seconds: Annotated[float, Positive] = 30.0
    """A peer whose machine is silent this long is taken for dead (keep-alive, user time-out)."""

    backlog: Annotated[int, Positive] = 2048
    """Connections that wait to be accepted."""

    frame_bytes_max: Annotated[int, Positive] = GIB
    """The largest body of a frame that is accepted; buffers beside it have their own limit."""

    compression: str | None = None
    """`lz4`, `zstd` or `auto`; off by default, since most networks outrun it."""

    require_encryption: bool | None = None
    """Refuse peers without TLS.  None: required off loopback in protected mode."""


class Tls(Settings, frozen=True, kw_only=True):
    """Certificates; all are paths to PEM files."""

    path: ClassVar[str] = "comm.tls"

    ca_file: str | None = None
    """Authorities that all sides trust."""

    ciphers: str | None = None
    """What OpenSSL may choose from, in its own words; None: as it does by itself."""

    scheduler_cert: str | None = None
    """The scheduler's certificate."""

    scheduler_key: str | None = None
    """Its key; None: in the same file."""

    worker_cert: str | None = None
    """Every worker's certificate."""

    worker_key: str | None = None
    """Its key; None: in the same file."""

    client_cert: str | None = None
    """Every client's certificate."""

    client_key: str | None = None
    """Its key; None: in the same file."""
