"""`distributed.utils`: options of Python written as those of a command line."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import click


def has_keyword(func: Callable[..., Any], keyword: str) -> bool:
    """Whether a function takes an argument of that name; False if nobody can tell."""
    try:
        return keyword in inspect.signature(func).parameters
    except (TypeError, ValueError):
        return False


def command_has_keyword(cmd: str | ModuleType | Callable[..., Any] | None, k: str) -> bool:
    """Whether a command takes an option.

    Args:
        cmd: the command, a module that has it as `main`, or the name of one.
        k: as Python writes it: `nthreads`, `memory_limit`.
    """
    if isinstance(cmd, str):
        cmd = importlib.import_module(cmd)
    command = getattr(cmd, "main", None) if isinstance(cmd, ModuleType) else cmd
    if not isinstance(command, click.Command):
        return command is not None and has_keyword(command, k)
    wanted = "--" + k.replace("_", "-")
    return any(
        k == option.name or wanted in (*option.opts, *option.secondary_opts)
        for option in command.params
    )


def cli_keywords(
    d: Mapping[str, Any],
    cls: Callable[..., Any] | None = None,
    cmd: str | ModuleType | None = None,
) -> list[str]:
    """`{"save_file": "x"}` → `["--save-file", "x"]`.

    Args:
        cls: what is made of the options at last, and must know each of them;
        cmd: or the command in between.

    Raises:
        ValueError: neither knows one of them.
    """
    words: list[str] = []
    for name, value in d.items():
        knows = cls is None and cmd is None
        knows = knows or (cls is not None and _takes(cls, name))
        if not (knows or command_has_keyword(cmd, name)):
            who = " and ".join(str(getattr(one, "__name__", one)) for one in (cls, cmd) if one)
            raise ValueError(f"{who} does not support keyword {name}")
        text = str(value)
        words += ["--" + name.replace("_", "-"), f'"{text}"' if " " in text else text]
    return words


def _takes(cls: Callable[..., Any], name: str) -> bool:
    """Whether a class takes an argument, in one of the constructors that its own calls."""
    bases = inspect.getmro(cls) if inspect.isclass(cls) else (cls,)
    return any(has_keyword(base, name) for base in bases if base is not object)
