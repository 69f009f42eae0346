"""What a user may be told of calls by name: what happened, why, what to do."""

from __future__ import annotations


class RPCClosed(OSError):
    """A call was made by something that was closed."""

    def __init__(self, text: str = "RPC Closed") -> None:
        super().__init__(text)


class PoolClosed(RuntimeError):
    """A comm was asked of a pool that was closed, or has not been started."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return (
            f"ConnectionPool is {self.status}: it gives no comms. Await a pool to start it, and "
            "make another one if it was closed."
        )


class NotListening(ValueError):
    """A server was asked for its address, and listens nowhere."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server

    def __str__(self) -> str:
        return f"{self.server} has no address yet: `await server.listen(port)` gives it one."


class ServerFailed(RuntimeError):
    """A server could not start."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server

    def __str__(self) -> str:
        return f"{self.server} failed to start. What it was that failed stands above this."


class NoOperation(TypeError):
    """A message that came is none that could be answered."""

    def __init__(self, message: object) -> None:
        super().__init__(str(message)[:200])

    def __str__(self) -> str:
        return f"Bad message: a dict with an operation as 'op' is expected, and not {self.args[0]}"


class NotAStatus(TypeError):
    """A server's status was set to something else."""

    def __init__(self, value: object) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return f"Expected a Status, such as Status.running, and not {self.value!r}"
