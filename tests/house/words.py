"""Rules about one file by itself: its lengths, its words, its docstring, who assigns what."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.house.source import Finding, Source, length_without_docstring, qualified_functions

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60

LONG_FILES: dict[str, int] = {}
"""Generated files and pure tables that may be longer, with their limit: it may only shrink."""

LONG_FUNCTIONS: dict[str, int] = {}
"""`path:Class.method` of a function that may be longer, with its limit: it may only shrink."""

BANNED_WORDS = {
    "manager": "say what it does, e.g. pool, registry, machine",
    "managers": "say what they do",
    "util": "say what is in it",
    "utils": "say what is in it",
    "info": "say which facts",
    "infos": "say which facts",
}
BANNED_NAMES = {
    "obj": "say what kind of thing it is",
    "tmp": "say what it holds until when",
    "ts": "write task or instant",
    "ws": "write worker",
}
"""Whole identifiers; unlike words, they may be a part of a longer one."""

UPSTREAM_NAMES = {
    "exc_info", "host_info", "scheduler_info", "SchedulerInfo", "sys_info", "version_info"
}  # fmt: skip
"""Public names of `distributed` or the standard library that can't be spelt otherwise."""

BESIDE_UPSTREAM = {"coordination_info"}
"""Public names of our own that stand beside one of those, and are asked for by that name."""

UPSTREAM_PARAMETERS = {("src/shoal/client/detaching.py", "obj")}
"""Parameters of public functions of `distributed`, with the file in which they are."""

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
STATE_ROOM = "src/shoal/scheduler/"
STATE_WRITER = "move"


def check(source: Source) -> Iterator[Finding]:
    """Every rule of this file."""
    yield from lengths(source)
    yield from leftovers(source)
    yield from docstring(source)
    yield from names(source)
    yield from recursion(source)
    yield from policy_writes(source)


def lengths(source: Source) -> Iterator[Finding]:
    """A file answers one question and a function does one thing; length is the first symptom."""
    lines = source.text.count("\n")
    limit = LONG_FILES.get(source.path, FILE_LINES_MAX)
    if lines > limit:
        yield source.finding(1, f"{lines} lines, and {limit} are the limit: split it by meaning")
    for name, function in qualified_functions(source.tree):
        length = length_without_docstring(function)
        limit = LONG_FUNCTIONS.get(f"{source.path}:{name}", FUNCTION_LINES_MAX)
        if length > limit:
            yield source.finding(
                function, f"{name} has {length} lines, and {limit} are the limit: split it"
            )


def loose_ratchets(sources: dict[str, Source]) -> Iterator[Finding]:
    """An exemption that is larger than what it exempts must shrink with it, or go."""
    for path, limit in LONG_FILES.items():
        lines = sources[path].text.count("\n") if path in sources else 0
        if lines < limit:
            yield Finding(path, 1, f"its limit in LONG_FILES is {limit}; lower it to {lines}")
    for place, limit in LONG_FUNCTIONS.items():
        path, _, name = place.partition(":")
        tree = sources[path].tree if path in sources else ast.Module([], [])
        found = dict(qualified_functions(tree)).get(name)
        length = 0 if found is None else length_without_docstring(found)
        if length < limit:
            yield Finding(path, 1, f"the limit of {name} is {limit}; lower it to {length}")


def leftovers(source: Source) -> Iterator[Finding]:
    """What is left to do is done, or is somewhere it will be read."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (found := LEFTOVER.search(token.string)):
            yield source.finding(token.start[0], f"a {found[0]} was left behind")


def docstring(source: Source) -> Iterator[Finding]:
    """Each module of ours says its role in its first line."""
    if source.path.startswith("src/") and not ast.get_docstring(source.tree):
        yield source.finding(1, "no docstring that says the module's role")


def names(source: Source) -> Iterator[Finding]:
    """A name says what a thing is; some words never do."""
    if not source.path.startswith(("src/", "tools/", "benchmarks/")):
        return
    if source.path.startswith("src/shoal/compat/"):
        return  # others chose these names
    for name, node in _new_names(source):
        if name in UPSTREAM_NAMES | BESIDE_UPSTREAM or (source.path, name) in UPSTREAM_PARAMETERS:
            continue
        advice = BANNED_NAMES.get(name)
        for word in words_of(name):
            advice = advice or BANNED_WORDS.get(word)
        if advice is not None:
            yield source.finding(node, f"the name {name!r}: {advice}")


def words_of(identifier: str) -> list[str]:
    """`"loadDataInfo_x"` → `["load", "data", "info", "x"]`."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", identifier)]


def _new_names(source: Source) -> Iterator[tuple[str, ast.AST | int]]:
    yield PurePosixPath(source.path).stem, 1
    for node in source.nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.arg():
                yield node.arg, node
            case ast.Name(ctx=ast.Store()):
                yield node.id, node
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node


def recursion(source: Source) -> Iterator[Finding]:
    """A chain of 100,000 tasks must not become 100,000 frames."""
    if not source.is_pure:
        return
    for function in source.functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _called(node) == function.name:
                yield source.finding(node, f"{function.name} calls itself; use a list of work")


def _called(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name("self"), name):
            return name
    return None


def policy_writes(source: Source) -> Iterator[Finding]:
    """A policy reads and returns; only the machine changes what it is given."""
    if "/policies/" not in source.path or not source.path.startswith("src/"):
        return
    for node in source.nodes:
        match node:
            case ast.Attribute(ast.Name("self")):
                continue
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield source.finding(node, f"a policy assigns to {ast.unparse(node)}")


def state_writers(sources: dict[str, Source]) -> Iterator[Finding]:
    """The scheduler's task states change in one function, so that the story misses none."""
    writers = []
    for source in sources.values():
        if not source.path.startswith(STATE_ROOM):
            continue
        for name, function in qualified_functions(source.tree):
            for node in _assignments_to_state(function):
                last = name.rpartition(".")[2]
                if last == STATE_WRITER:
                    writers.append((source, node, name))
                elif not (last == "__init__" and ast.unparse(node).startswith("self.")):
                    yield source.finding(node, f"{name} assigns a state; only {STATE_WRITER} may")
    for source, node, name in writers[1:]:
        yield source.finding(node, f"{name} is a second place that assigns a task's state")


def _assignments_to_state(function: ast.AST) -> Iterator[ast.AST]:
    """Those in `function` itself, not in functions inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Attribute(attr="state", ctx=ast.Store()):
                yield node
            case ast.Call(ast.Name("setattr"), [_, ast.Constant("state"), *_]):
                yield node
        waiting.extend(ast.iter_child_nodes(node))
