"""Functions and arguments that leave the client well, and can't be read on a worker."""

import os
import sys
import types
from typing import Any, NoReturn


def takes(value: object) -> None:
    """What is called with an argument that nobody can read."""


def ends_the_process() -> NoReturn:
    """Worse than anything that is raised."""
    os._exit(17)


class RefusesState:
    def __init__(self) -> None:
        self.state = 1

    def __setstate__(self, state: object) -> NoReturn:
        raise LookupError("no such state")


class Exits:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def _module_of_the_client() -> Any:
    module = types.ModuleType("module_of_the_client")
    exec("def function(): return 1\nclass Kind: pass", vars(module))
    sys.modules[module.__name__] = module
    return module


def argument_whose_setstate_raises() -> Any:
    return takes, (RefusesState(),), "LookupError"


def argument_that_exits_when_read() -> Any:
    return takes, (Exits(),), "SystemExit"


def argument_of_a_module_that_only_the_client_has() -> Any:
    return takes, (_module_of_the_client().Kind(),), "ModuleNotFoundError"


def function_of_a_module_that_only_the_client_has() -> Any:
    return _module_of_the_client().function, (), "ModuleNotFoundError"


ARGUMENTS = (
    argument_whose_setstate_raises,
    argument_that_exits_when_read,
    argument_of_a_module_that_only_the_client_has,
    function_of_a_module_that_only_the_client_has,
)
