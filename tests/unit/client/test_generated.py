"""The blocking client is made from the subjects of the asynchronous one, and from all of them."""

import importlib
import inspect

from shoal.client.asynchronous import AsyncClient
from shoal.client.client import Client
from shoal.client.lifecycle import ClientBase
from tests.programs import ROOT, printed_by
from tools.make_blocking import CONTROL, GENERATED, SUBJECTS, blocking_text

SOURCE = '''
from collections.abc import Callable
from typing import Any
from shoal.client.current import default_client

LIMIT = 3


class Answer:
    """A class of its own."""


class Questions:
    @property
    def name(self) -> str:
        """A name."""
        return "x"

    async def ask(self, what: Any, *, n: int = LIMIT, asynchronous: bool | None = None) -> Answer:
        """Ask."""

    def _private(self, hook: Callable[..., Any]) -> None:
        """Is not made blocking, so that what it names is not needed."""
'''


def test_the_generated_files_are_fresh():
    assert printed_by("tools/make_blocking.py", "--check", cwd=ROOT) == ""


def test_a_subject_becomes_blocking_with_what_its_signatures_name():
    text = blocking_text("questions", "Questions", SOURCE)
    assert "from typing import Any\n" in text
    assert "from shoal.client.control.questions import Answer, LIMIT\n" in text
    assert "Callable" not in text
    assert "default_client" not in text
    assert "    @property\n    def name(self) -> str:\n" in text
    assert "        return self._async.name\n" in text
    asked = "self._async.ask(what, n=n, asynchronous=asynchronous)"
    assert f"        return self.hand_over({asked}, asynchronous)\n" in text


def test_every_class_on_the_clients_base_is_in_the_table():
    found = []
    for path in CONTROL.glob("*.py"):
        module = importlib.import_module(f"shoal.client.control.{path.stem}")
        for name, part in inspect.getmembers(module, inspect.isclass):
            if part.__module__ == module.__name__ and issubclass(part, ClientBase):
                found.append((path.stem, name))
    assert sorted(found) == sorted(SUBJECTS)
    files = {path.stem for path in GENERATED.glob("*.py")}
    assert files == {file for file, _ in SUBJECTS} | {"__init__"}


def test_every_method_has_both_faces_with_one_signature():
    subjects = [vars(subject) for subject in AsyncClient.__bases__]
    names = [name for subject in subjects for name in subject if not name.startswith("_")]
    assert len(names) == len(set(names)) > 20
    for name in names:
        ours, theirs = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.getdoc(ours) == inspect.getdoc(theirs), name
        if isinstance(theirs, property):
            continue
        assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters, name
        assert not inspect.iscoroutinefunction(ours), name
