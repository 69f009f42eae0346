"""What clients are told of why tasks wait, or ran where they did: text that shows as its lines."""

from __future__ import annotations


class Explanation(str):
    """Lines for people, shown as lines wherever Python shows a value; else a text like others."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
