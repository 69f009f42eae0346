"""What a user may be told of comms under their old names: what happened, why, what to do."""

from __future__ import annotations

from shoal.comms.errors import CommClosedError


class FatalCommClosedError(CommClosedError):
    """A comm ended in a way that another attempt would not mend."""


class NothingInCommon(ValueError):
    """Two ends of a comm have nothing in common."""

    def __init__(self, missing: str) -> None:
        super().__init__(missing)
        self.missing = missing

    def __str__(self) -> str:
        return (
            f"The two ends of a comm did not both say which {self.missing} they have. "
            "Your Dask versions may not be in sync: install the same ones on both sides."
        )


class NoContext(TypeError):
    """A comm over TLS was to be made without certificates."""

    def __str__(self) -> str:
        return (
            "TLS expects a `ssl_context` argument of type ssl.SSLContext, which has the "
            "certificates: take it from Security(...).get_connection_args(role)."
        )


class NotEncrypted(RuntimeError):
    """Encryption was required of a comm that has none."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return (
            "encryption required by Dask configuration, refusing communication from/to "
            f"{self.address!r}. Its scheme does not encrypt: use tls, or leave "
            "`require_encryption` out."
        )


class NoPort(NotImplementedError):
    """A location of a scheme without ports was asked for one."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location

    def __str__(self) -> str:
        return (
            f"{self.location!r} has no host and port: addresses of its scheme are names. "
            "Use get_address_host, or a scheme such as tcp."
        )
