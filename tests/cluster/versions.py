"""This package as another version of it might be: a copy of the sources with some lines changed."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from shoal.version import VERSION
from tests.programs import ROOT


@dataclass(frozen=True)
class Change:
    """A piece of text that is in a file exactly once, and what is there instead."""

    path: str
    before: str
    after: str


@dataclass(frozen=True)
class OtherVersion:
    """What is different in another version."""

    name: str
    version: str
    changes: list[Change] = field(default_factory=list)
    extended: tuple[str, ...] = ()
    """Messages that have one field more."""

    def build(self, folder: Path) -> Path:
        """Make it, as something that can be first in a `PYTHONPATH`.

        Raises:
            AssertionError: a text to be changed is not there any more, or more than once.
        """
        shutil.copytree(
            ROOT / "src" / "shoal",
            folder / "shoal",
            ignore=shutil.ignore_patterns("__pycache__", "sim", "static"),
        )
        named = Change("version.py", f'VERSION = "{VERSION}"', f'VERSION = "{self.version}"')
        for change in [named, *self.changes]:
            path = folder / "shoal" / change.path
            text = path.read_text(encoding="utf-8")
            assert text.count(change.before) == 1, f"{change.before!r} in {change.path}"
            path.write_text(text.replace(change.before, change.after), encoding="utf-8")
        messages = folder / "shoal" / "protocol" / "messages.py"
        text = messages.read_text(encoding="utf-8")
        for kind in self.extended:
            before, named, rest = text.partition(f"class {kind}(Message, ")
            body, end, after = rest.partition("\n\n\n")
            assert named, kind
            text = f"{before}{named}{body}\n    more: str = 'what is new'{end}{after}"
        messages.write_text(text, encoding="utf-8")
        return folder


def _tag(kind: str, before: int, after: int) -> Change:
    named = f"class {kind}(Message, frozen=True, tag="
    return Change("protocol/messages.py", f"{named}{before})", f"{named}{after})")


LATER_PATCH = OtherVersion(
    "a later patch, whose messages have more in them",
    "0.1.9",
    extended=("RegisterClient", "RegisterWorker", "ReleaseTasks", "RunTask", "TaskInMemory"),
)
EARLIER_PATCH = OtherVersion("an earlier patch", "0.0.9")
OTHER_PROTOCOL = OtherVersion(
    "another protocol",
    "0.2.0",
    [Change("protocol/handshake.py", "VERSION: Final = 1", "VERSION: Final = 2")],
)
SAYS_THE_UNHEARD_OF = OtherVersion(
    "one that says what others do not know",
    "0.1.8",
    [_tag("ReleaseTasks", 7, 199), _tag("WorkerHeartbeat", 47, 198)],
)
HEARS_NOT_ALL = OtherVersion(
    "one that does not know what others say",
    "0.1.7",
    [_tag("TaskInMemory", 21, 197), _tag("RunTask", 63, 196)],
)
