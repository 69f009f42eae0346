"""Rules about what is said on the wire: explained, numbered once, and heard once."""

import ast
import re
from collections.abc import Iterator

from tests.house.source import Finding, Source

DICTIONARY = "src/shoal/protocol/"
HEARERS = {
    "from_client": "scheduler",
    "to_client": "client",
    "from_worker": "scheduler",
    "to_worker": "worker",
    "from_peer": "worker",
    "to_peer": "worker",
}
"""Direction, as a subject's table calls it → the role that hears what is said in it."""

REPLIES = {"Answer", "Refusal", "Replicas", "ActorReply", "ShardsFetched"}
"""They end the call whose number they carry, whatever it was: no handler by name."""


def check(sources: dict[str, Source]) -> Iterator[Finding]:
    """Every rule of this file."""
    dictionary = [source for path, source in sources.items() if path.startswith(DICTIONARY)]
    messages = message_classes(dictionary)
    yield from _explained(dictionary)
    yield from _numbered(messages)
    yield from _heard(dictionary, messages, sources)


def message_classes(dictionary: list[Source]) -> dict[str, tuple[Source, ast.ClassDef]]:
    """Every class derived from `Message`, or from another message, by its name."""
    classes = [
        (source, node)
        for source in dictionary
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
    ]
    found: dict[str, tuple[Source, ast.ClassDef]] = {}
    nfound = -1
    while len(found) > nfound:
        nfound = len(found)
        for source, node in classes:
            if any(base == "Message" or base in found for base in map(_name, node.bases)):
                found[node.name] = (source, node)
    return found


def _name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _explained(dictionary: list[Source]) -> Iterator[Finding]:
    for source in dictionary:
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not ast.get_docstring(node):
                yield source.finding(node, f"{node.name} has no docstring")


def _numbered(messages: dict[str, tuple[Source, ast.ClassDef]]) -> Iterator[Finding]:
    owner: dict[int, str] = {}
    for name, (source, node) in messages.items():
        tags = [keyword.value for keyword in node.keywords if keyword.arg == "tag"]
        tag = tags[0].value if tags and isinstance(tags[0], ast.Constant) else None
        if type(tag) is not int:
            yield source.finding(node, f"{name} has no numeric tag")
        elif tag in owner:
            yield source.finding(node, f"{name} has the tag {tag} of {owner[tag]}")
        else:
            owner[tag] = name


def _heard(
    dictionary: list[Source],
    messages: dict[str, tuple[Source, ast.ClassDef]],
    sources: dict[str, Source],
) -> Iterator[Finding]:
    spoken = set()
    for direction, name in said(dictionary):
        spoken.add(name)
        role = HEARERS[direction]
        source, node = messages[name]
        handlers = handlers_of(role, sources)
        bases = [_name(base) for base in node.bases if _name(base) in messages]
        places = next((handlers[s] for s in map(snake, [name, *bases]) if s in handlers), [])
        if not REPLIES.isdisjoint([name, *bases]) or len(places) == 1:
            continue
        where = ", ".join(places) or "nowhere"
        yield source.finding(
            node, f"the {role} must handle {name} in exactly one on_{snake(name)}: {where}"
        )
    for name, (source, node) in messages.items():
        if name not in spoken:
            yield source.finding(node, f"{name} is in no direction of a SUBJECT")


def said(dictionary: list[Source]) -> Iterator[tuple[str, str]]:
    """Each row of the subjects' tables: the direction, and the name of the message."""
    for source in dictionary:
        for node in source.tree.body:
            match node:
                case ast.Assign([ast.Name("SUBJECT")], ast.Call(keywords=tables)):
                    for table in tables:
                        if table.arg in HEARERS and isinstance(table.value, ast.Dict):
                            for key in table.value.keys:
                                if isinstance(key, ast.Name):
                                    yield table.arg, key.id


def snake(name: str) -> str:
    """`"TaskFinished"` → `"task_finished"`; `"NThreads"` → `"n_threads"`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def handlers_of(role: str, sources: dict[str, Source]) -> dict[str, list[str]]:
    """What `role` handles → where: functions named `on_<message>`."""
    found: dict[str, list[str]] = {}
    for source in sources.values():
        if source.path.startswith(f"src/shoal/{role}/"):
            for function in source.functions:
                if function.name.startswith("on_"):
                    place = f"{source.path}:{function.lineno}"
                    found.setdefault(function.name.removeprefix("on_"), []).append(place)
    return found
