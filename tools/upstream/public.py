"""Which tests of a file use public names only, by looking at what they name.

A test is public unless it, or a function or fixture of its module that it uses, imports what is not
in `public_names`, names an attribute that begins with an underscore, or takes an attribute of a
scheduler, a worker, a nanny or a cluster that is none of `SEEN`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

PACKAGE: Final = "distributed"
SERVICES: Final = frozenset(
    ("s", "a", "b", "w", "w1", "w2", "ws", "worker", "scheduler", "nanny", "n", "dask_worker",
     "dask_scheduler", "s1", "s2", "aa", "bb", "alice", "bob")
)  # fmt: skip
"""Names that tests give to servers and what they show."""

SEEN: Final = frozenset(
    ("address", "close", "status", "id", "name", "port", "host", "ip", "log_event", "get_events",
     "finished", "identity", "workers_list", "address_safe", "nthreads", "kill", "restart",
     "worker_address", "pid", "data", "listener", "client", "loop", "services", "add_plugin",
     "scheduler_address")
)  # fmt: skip
"""What a program may well ask of one of them."""


def public_tests(source: str, public_names: dict[str, list[str]]) -> set[str]:
    """The names of a file's public tests.

    Args:
        public_names: module → the names that programs import from there.
    """
    tree = ast.parse(source)
    private = _private_imports(tree.body, public_names)
    functions = {node.name: node for node in _functions(tree.body)}
    inner = {name: _is_internal(node, private, public_names) for name, node in functions.items()}
    tests = {name for name in functions if name.startswith("test")}
    return {name for name in tests if not _reaches_internal(name, functions, inner)}


def _functions(
    body: list[ast.stmt],
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _functions(node.body)


def _reaches_internal(name: str, functions: dict[str, ast.AST], inner: dict[str, bool]) -> bool:
    """Whether a function, or one of the module's that it uses in turn, is internal."""
    seen: set[str] = set()
    left = [name]
    while left:
        current = left.pop()
        if current in seen or current not in functions:
            continue
        if inner[current]:
            return True
        seen.add(current)
        left += [node.id for node in ast.walk(functions[current]) if isinstance(node, ast.Name)]
        left += [node.arg for node in ast.walk(functions[current]) if isinstance(node, ast.arg)]
    return False


def _private_imports(body: list[ast.stmt], public_names: dict[str, list[str]]) -> set[str]:
    """The names that these statements bind to what is not public."""
    private: set[str] = set()
    for node in body:
        for each in ast.walk(node):
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith(PACKAGE):
                public = public_names.get(each.module or "", ())
                private |= {
                    alias.asname or alias.name
                    for alias in each.names
                    if alias.name not in public
                    and f"{each.module}.{alias.name}" not in public_names
                }
            elif isinstance(each, ast.Import):
                private |= {
                    alias.asname or alias.name.partition(".")[0]
                    for alias in each.names
                    if alias.name.startswith(PACKAGE + ".") and alias.name not in public_names
                }
    return private


def _is_internal(node: ast.AST, private: set[str], public_names: dict[str, list[str]]) -> bool:
    own = private | _private_imports(list(getattr(node, "body", ())), public_names)
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in own:
            return True
        if isinstance(each, ast.Attribute):
            if each.attr.startswith("_") and not each.attr.startswith("__"):
                return True
            base = each.value
            if isinstance(base, ast.Name) and base.id in SERVICES and each.attr not in SEEN:
                return True
            if _is_of_a_cluster(base) and each.attr not in SEEN:
                return True
    return False


def _is_of_a_cluster(node: ast.expr) -> bool:
    """`cluster.scheduler.tasks` looks inside; `client.scheduler.who_has` is a call to it."""
    if not isinstance(node, ast.Attribute) or node.attr != "scheduler":
        return False
    return isinstance(node.value, ast.Name) and "cluster" in node.value.id
