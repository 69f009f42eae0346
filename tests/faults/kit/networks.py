"""Machines of their own on this one: network namespaces, joined by a bridge that can be broken."""

from __future__ import annotations

import os
from itertools import count
from types import TracebackType

from tests.faults.kit.limits import run

_numbers = count(os.getpid() % 200 * 16)


class Network:
    """A bridge, and machines that hang on it; use it in a `with`, which removes all of it.

    This machine is on it too, as `host`.
    """

    def __init__(self, *names: str) -> None:
        """`names`: of the machines."""
        number = next(_numbers)
        self._subnet = f"10.{77 + number // 4096 % 100}.{number // 16 % 256}"
        self._key = f"sh{os.getpid() % 100_000}{number % 16:x}"
        self._names = names
        self.host = f"{self._subnet}.1"

    def __enter__(self) -> Network:
        try:
            run("ip", "link", "add", self._key, "type", "bridge")
            run("ip", "addr", "add", f"{self.host}/24", "dev", self._key)
            run("ip", "link", "set", self._key, "up")
            for number, name in enumerate(self._names):
                self._add(number, name)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def inside(self, name: str) -> tuple[str, ...]:
        """What to write before a command that shall run on that machine."""
        return ("ip", "netns", "exec", self._namespace(name))

    def address_of(self, name: str) -> str:
        """Of a machine, for those on this network."""
        return f"{self._subnet}.{10 + self._names.index(name)}"

    def cut(self, name: str) -> None:
        """Nothing reaches that machine any more, nor leaves it, and nobody is told."""
        run("ip", "link", "set", self._near(name), "down")

    def join(self, name: str) -> None:
        """It is there again."""
        run("ip", "link", "set", self._near(name), "up")

    def _near(self, name: str) -> str:
        return f"{self._key}n{self._names.index(name)}"

    def _namespace(self, name: str) -> str:
        return f"{self._key}-{name}"

    def _add(self, number: int, name: str) -> None:
        far, near, space = f"{self._key}f{number}", self._near(name), self._namespace(name)
        run("ip", "netns", "add", space)
        run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        run("ip", "link", "set", far, "netns", space)
        run("ip", "link", "set", near, "master", self._key)
        run("ip", "link", "set", near, "up")
        in_it = ("ip", "-n", space)
        run(*in_it, "addr", "add", f"{self.address_of(name)}/24", "dev", far)
        run(*in_it, "link", "set", far, "up")
        run(*in_it, "link", "set", "lo", "up")

    def _remove(self) -> None:
        for name in self._names:
            _try("ip", "netns", "del", self._namespace(name))
        _try("ip", "link", "del", self._key)


def _try(*command: str) -> None:
    """For what may not be there."""
    try:
        run(*command)
    except AssertionError:
        return
