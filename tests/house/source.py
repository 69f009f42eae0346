"""What the rules read: a source file with its syntax tree; and what they say: a finding."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef

PURE_PACKAGES = ("src/shoal/protocol/", "src/shoal/web/feeds/")
PURE_ROOMS = ("model", "policies", "machine")


class Finding(NamedTuple):
    """A rule that a line breaks."""

    path: str
    line: int
    problem: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.problem}"


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the top of the repository, with slashes."""

    path: str
    text: str

    @classmethod
    def read(cls, root: Path, path: Path) -> "Source":
        """The file at `path`, which is below `root`."""
        return cls(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree, parents first."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def module(self) -> str:
        """The dotted name by which the file is imported, e.g. `shoal.comms.tcp`."""
        parts = list(PurePosixPath(self.path).with_suffix("").parts)
        if parts[:1] == ["src"]:
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    @cached_property
    def is_pure(self) -> bool:
        """Whether what the file decides must be the same in every run."""
        if self.path.startswith(PURE_PACKAGES):
            return True
        parts = PurePosixPath(self.path).with_suffix("").parts
        return parts[:2] == ("src", "shoal") and any(room in parts[2:] for room in PURE_ROOMS)

    def finding(self, node: ast.AST | int, problem: str) -> Finding:
        """`problem`, at the line of `node`."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return Finding(self.path, line, problem)


def length_without_docstring(function: Function) -> int:
    """Lines from `def` to the end, decorators and docstring not counted."""
    end = function.end_lineno or function.lineno
    length = end - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        length -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return length


def qualified_functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Each function with its name as `Class.method`, in the order of the file."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop()
        inside: list[tuple[str, ast.AST]] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                yield prefix + child.name, child
            named = isinstance(child, Function | ast.ClassDef)
            inside.append((f"{prefix}{child.name}." if named else prefix, child))  # type: ignore[attr-defined]
        waiting.extend(reversed(inside))
