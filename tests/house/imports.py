"""Rules about the graph of modules: no cycle, not even a deferred one, and no module unused."""

import ast
from collections.abc import Iterable, Iterator

from tests.house.source import Finding, Source

Graph = dict[str, dict[str, int]]
"""Module → what it imports → the line where it does."""

ENTRANCES = ("shoal", "__main__")
"""Last parts of modules that are run or imported from outside."""


def import_graph(sources: Iterable[Source]) -> Graph:
    """Who imports whom, imports in functions and under TYPE_CHECKING included."""
    by_module = {source.module: source for source in sources}
    graph: Graph = {}
    for module, source in by_module.items():
        edges = graph.setdefault(module, {})
        for dotted, line in _imports(source):
            target = dotted
            while target and target not in by_module:
                target = target.rpartition(".")[0]
            if target and target != module:
                edges.setdefault(target, line)
    return graph


def _imports(source: Source) -> Iterator[tuple[str, int]]:
    """Each dotted name that is imported; of `from a import b`, both `a.b` and what it falls to."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = source.module.split(".")
                if not source.path.endswith("__init__.py"):
                    package.pop()
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def cycles(sources: dict[str, Source]) -> Iterator[Finding]:
    """Two modules that need each other are one module in two files."""
    graph = import_graph(sources.values())
    path_of = {source.module: source.path for source in sources.values()}
    for component in strong_components(graph):
        if len(component) > 1:
            ring = _ring(graph, component)
            problem = "an import cycle: " + " -> ".join([*ring, ring[0]])
            line = graph[ring[0]][ring[1]]
            yield Finding(path_of[ring[0]], line, problem)


def strong_components(graph: Graph) -> list[list[str]]:
    """The largest sets of modules that all reach each other (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in index else []
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for target in targets:
                if target not in index:
                    work.append((target, iter(graph.get(target, {}))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    found.append(sorted(stack[cut:]))
                    on_stack.difference_update(stack[cut:])
                    del stack[cut:]
    return found


def _ring(graph: Graph, component: list[str]) -> list[str]:
    """A shortest way from the first module of `component` back to it, end left out."""
    start = component[0]
    came_from = {start: start}
    waiting = [start]
    for node in waiting:
        for target in graph[node]:
            if target == start:
                way = [node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if target in component and target not in came_from:
                came_from[target] = node
                waiting.append(target)
    raise AssertionError(f"{component} is not strongly connected")


def folders_without_init(sources: dict[str, Source]) -> Iterator[Finding]:
    """A folder without `__init__.py` works from the checkout and is missing from the wheel."""
    folders = {path.rpartition("/")[0] for path in sources if path.startswith("src/shoal/")}
    for folder in sorted(folders):
        if f"{folder}/__init__.py" not in sources:
            yield Finding(f"{folder}/__init__.py", 1, "missing, so the folder won't be installed")


def unused(sources: dict[str, Source], mentions: str) -> Iterator[Finding]:
    """Each module is imported by another, or named in a text: an entry point, a table of names.

    Args:
        sources: the files below `src/`.
        mentions: other texts that may name a module, such as `pyproject.toml`.
    """
    graph = import_graph(sources.values())
    used = {target for edges in graph.values() for target in edges}
    named = [text for source in sources.values() for text in _texts(source)]
    for source in sources.values():
        module = source.module
        if source.path.endswith("__init__.py") or module.rpartition(".")[2] in ENTRANCES:
            continue
        if module in used or module in mentions:
            continue
        if not any(module in text for text in named):
            yield source.finding(1, "nothing imports this module; use it or remove it")


def _texts(source: Source) -> Iterator[str]:
    """Texts that look like a dotted name of ours; docstrings don't count as a use."""
    for node in source.nodes:
        match node:
            case ast.Constant(str(text)) if text.startswith("shoal.") and " " not in text:
                yield text
