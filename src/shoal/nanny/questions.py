"""Questions of a process to its nanny, and their answers: lines of the channel between them."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from shoal.protocol.running import Outcome

ASK: Final = "ask"
ANSWER: Final = "answer"
TOPICS: Final = "topics"
PREPARE: Final = "prepare"
"""What a process is told that shall do what it has to do before others end."""


def question(number: int, operation: str, argument: bytes) -> dict[str, Any]:
    """The words that ask for something."""
    return {ASK: number, "operation": operation, "argument": base64.b64encode(argument).decode()}


def argument_of(words: Mapping[str, Any]) -> bytes:
    """What a question is about."""
    return base64.b64decode(words["argument"])


def answer_to(words: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The words that answer a question."""
    packed = base64.b64encode(msgspec.msgpack.encode(outcome)).decode()
    return {ANSWER: words[ASK], "outcome": packed}


def told(topics: list[str], value: bytes) -> dict[str, Any]:
    """The words by which a nanny has its worker tell something under topics."""
    return {TOPICS: topics, "value": base64.b64encode(value).decode()}


def value_of(words: Mapping[str, Any]) -> bytes:
    """What is told by those words."""
    return base64.b64decode(words["value"])


class Asking:
    """The process's side; belongs to its loop."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        """`tell`: says words to the nanny."""
        self._tell = tell
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}

    async def ask(self, operation: str, argument: bytes) -> Outcome:
        """Have the nanny do something; ends with this process, which ends with its nanny."""
        number = next(self._numbers)
        waiting: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        try:
            self._tell(question(number, operation, argument))
            return await waiting
        finally:
            del self._waiting[number]

    def answered(self, words: Mapping[str, Any]) -> None:
        """The nanny has answered."""
        waiting = self._waiting.get(words[ANSWER])
        if waiting is not None and not waiting.done():
            packed = base64.b64decode(words["outcome"])
            waiting.set_result(msgspec.msgpack.decode(packed, type=Outcome))
