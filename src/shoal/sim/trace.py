"""What happened in one run: a fingerprint of all of it, and the last of it in words."""

import re
from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

PADDING: Final = re.compile(r"(\\x00){2,}")
"""What fills up small values on the wire."""

LINES_MAX: Final = 20_000
"""Lines kept in words; the fingerprint covers those before them as well."""


class Trace:
    """The record of one run.

    Two runs of one seed must have the same fingerprint whatever PYTHONHASHSEED is; if they don't,
    something iterates over a `set` or asks for an address in memory.
    """

    __slots__ = ("_hash", "lines", "nlines")

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self.lines: deque[tuple[float, str, str, Any]] = deque(maxlen=LINES_MAX)
        self.nlines = 0

    def note(self, now: float, who: str, what: str, about: Any = "") -> None:
        """Record that `who` did `what`; `about` must have a `repr` that shows values only."""
        self._hash.update(f"{now!r} {who} {what} {about!r}\n".encode())
        self.lines.append((now, who, what, about))
        self.nlines += 1

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of all that was noted so far."""
        return self._hash.hexdigest()

    def last(self, nlines: int, words: Iterable[str] = ()) -> list[str]:
        """The last lines, of those that mention any of `words` if any are given."""
        wanted = tuple(words)
        found: deque[str] = deque(maxlen=nlines)
        for now, who, what, about in self.lines:
            said = about if isinstance(about, str) else PADDING.sub("..", repr(about))
            text = f"{now:9.5f}  {who}: {what} {said}"
            if not wanted or any(word in text for word in wanted):
                found.append(text)
        return list(found)
