"""Tasks whose results can be checked: each value is a fingerprint of all that went into it.

A value stands for a function, its argument and the values of its inputs in their order.  So a value
that got mixed up anywhere (another task's, another version's, inputs swapped) shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from shoal.ids import Key

ALWAYS: Final = 1_000_000
"""As a number of failures: every run fails."""

NBYTES_MIN: Final = 16
"""No value is smaller: its fingerprint must fit into it."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What one version of a task does when it runs."""

    key: Key
    version: int = 0
    inputs: tuple[Key, ...] = ()
    seconds: float = 0.01
    nbytes: int = 100  # of its result
    nfailures: int = 0  # runs that raise before one ends well
    function: int = 0  # which of the client's functions it calls
    is_unsendable: bool = False  # its result can't be serialised, so it is good at its place only
    nsent_back: int = 0  # runs that ask to be run elsewhere, before any other ends
    secedes: bool = False  # a third of the way through
    rejoins: bool = False  # and takes a slot again after two
    peak_bytes: int = 0  # by which its worker grows half way through
    awaits: Key | None = None  # a third of the way through it waits until this was computed
    says_so: bool = False  # to its worker, as it had submitted that itself
    role: str = ""  # in a shuffle: transfer, barrier or unpack
    shuffle: str = ""  # of a transfer: the barrier's key, which is the shuffle's id
    partition: int = 0  # of a transfer, its input partition; of an unpack, its output partition
    noutputs: int = 0  # of a transfer or a barrier
    is_fickle: bool = False  # a transfer that gives other rows each time that it is run

    @property
    def label(self) -> str:
        """The text that is its argument on the wire."""
        return f"{self.key}@{self.version}"


class Value(NamedTuple):
    """A result."""

    fingerprint: int  # 64 bits
    nbytes: int
    is_unsendable: bool = False
    variant: int = 0  # of what a fickle transfer has cut: which of its runs has


def compute(function: str, label: str, inputs: Sequence[int]) -> int:
    """The fingerprint of a result, from those of its inputs in their order."""
    said = f"{function} {label} {' '.join(map(str, inputs))}"
    return int.from_bytes(blake2b(said.encode(), digest_size=8).digest(), "big")


def to_bytes(value: Value) -> bytes:
    """A small value as it travels inside a message."""
    return value.fingerprint.to_bytes(8, "big").ljust(value.nbytes, b"\0")


def from_bytes(value: bytes) -> Value:
    """A value that travelled inside a message."""
    return Value(int.from_bytes(value[:8], "big"), len(value))


def function_payload(function: int) -> bytes:
    """The code of one of the client's functions: its name."""
    return f"function-{function}".encode()


def bundle_payload(members: Sequence[TaskSpec]) -> bytes:
    """The code of tasks pickled together: each one's function and label."""
    return "|".join(f"function-{spec.function} {spec.label}" for spec in members).encode()


def call_of(code: bytes, argument: bytes | int) -> tuple[str, str]:
    """(function, label) that a run of `code` with `argument` calls."""
    if isinstance(argument, bytes):
        return code.decode(), argument.decode()
    function, label = code.decode().split("|")[argument].split(" ", 1)
    return function, label
