"""Settings of connections and their certificates."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from shoal.config.base import AtLeastZero, Positive, Settings
from shoal.units import GIB


class Comm(Settings, frozen=True, kw_only=True):
    """Connections between processes."""

    path: ClassVar[str] = "comm"

    connect_seconds: Annotated[float, Positive] = 30.0
    """Deadline for resolving, connecting and the handshake together."""

    handshake_seconds: Annotated[float, Positive] = 5.0
    """How long a stranger may take to say who they are."""

    silence_seconds: Annotated[float, Positive] = 15.0
    """A peer whose machine doesn't answer the system for this long is lost (TCP's keep-alive and
    user time-out)."""

    resume_seconds: Annotated[float, AtLeastZero] = 60.0
    """How long a worker or client tries to get back to its scheduler after their connection broke,
    if that has as much patience; 0: not at all."""

    backlog: Annotated[int, Positive] = 2048
    """Connections that wait to be accepted."""

    frame_bytes_max: Annotated[int, Positive] = GIB
    """The largest body of a frame that a service accepts; buffers beside it have their own
    limit."""

    compression: Literal["auto", "lz4", "zstd", "zlib"] | None = None
    """How large results travel to whoever asks for them from another machine: by `lz4`, `zstd`,
    `zlib`, or `auto`, the first of the first two that is installed; off by default, since most
    networks outrun it."""

    zstd_level: Annotated[int, Meta(ge=-7, le=22)] = 3
    """How hard zstd tries: more is smaller and slower."""

    zstd_threads: Annotated[int, Meta(ge=-1)] = 0
    """Threads that compress one buffer by zstd; 0: the one that is there, -1: one for each CPU."""

    event_loop: Literal["auto", "asyncio", "uvloop"] = "auto"
    """What runs the services' processes; `auto`: uvloop where it is installed."""

    require_encryption: bool | None = None
    """Insist on encrypted connections.  There are none yet: with this, nothing starts."""


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
