"""A lock and the claims to it."""

from typing import NamedTuple

from shoal.scheduler.model.entities import Client


class Claim(NamedTuple):
    """One attempt of a client to hold a lock, from its call to its release."""

    client: Client
    number: int  # the client's; it uses each once


class Lock:
    """A lock that is held; one that nobody holds is not known."""

    __slots__ = ("holder", "waiting")

    def __init__(self, holder: Claim) -> None:
        self.holder = holder
        self.waiting: dict[Claim, int] = {}  # -> the call to answer, the longest waiting first

    def __repr__(self) -> str:
        return f"<Lock of {self.holder.client}, {len(self.waiting)} wait>"
