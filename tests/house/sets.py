"""The rule that pure rooms never iterate over a `set`, whose order differs from run to run.

A small evaluator: it knows a type from annotations (arguments, variables, attributes of the pure
rooms' classes) and from what a variable is first given.  What it can't tell it lets pass.
"""

import ast
from collections.abc import Iterable, Iterator

from tests.house.source import Finding, Function, Source

SETS = {"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"}
MAPPINGS = {"dict", "defaultdict", "Mapping", "MutableMapping", "OrderedDict"}
SEQUENCES = {"list", "tuple", "Iterable", "Iterator", "Sequence", "deque", "OrderedSet"}
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference", "copy"}
SET_OPERATORS = ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor

ORDER_MATTERS = {"list", "tuple", "min", "max", "iter", "enumerate", "zip", "map", "filter", "sum"}
ORDER_MATTERS |= {"OrderedSet", "deque", "reversed", "next", "fromkeys", "join", "extend"}
ORDER_MATTERS |= {"add_all", "discard_all", "chain"}
ORDER_LOST = {"sorted", "set", "frozenset", "any", "all", "len"}
"""What is made from an iterable and doesn't depend on its order."""

Type = ast.expr | None
Types = dict[str, ast.expr]
A_SET: ast.expr = ast.Name("set")


def check(sources: Iterable[Source]) -> Iterator[Finding]:
    """Every iteration over a set in the pure rooms among `sources`."""
    pure = [source for source in sources if source.is_pure]
    attributes = attribute_types(pure)
    for source in pure:
        # A scope is the module or a function; nested ones see the outer names as well.
        scopes: list[tuple[ast.AST, Types]] = [(source.tree, {})]
        while scopes:
            scope, outer = scopes.pop()
            visitor = _Scope(source, attributes, outer)
            visitor.read(scope)
            yield from visitor.findings
            scopes.extend((function, visitor.names) for function in visitor.inner)


def attribute_types(sources: Iterable[Source]) -> Types:
    """Attribute → its annotation, where every class that has it agrees on what matters."""
    found: Types = {}
    doubtful = set()
    for source in sources:
        for name, annotation in _annotated_attributes(source):
            known = found.setdefault(name, annotation)
            if _kinds(known) != _kinds(annotation):
                doubtful.add(name)
    return {name: annotation for name, annotation in found.items() if name not in doubtful}


def _annotated_attributes(source: Source) -> Iterator[tuple[str, ast.expr]]:
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                match child:
                    case ast.AnnAssign(target=ast.Name(name), annotation=annotation):
                        yield name, annotation
                    case ast.FunctionDef(name=name, returns=ast.expr() as annotation) if any(
                        ast.unparse(d) in ("property", "cached_property")
                        for d in child.decorator_list
                    ):
                        yield name, annotation
        match node:
            case ast.AnnAssign(target=ast.Attribute(ast.Name("self"), name), annotation=annotation):
                yield name, annotation
            case ast.Assign([ast.Attribute(ast.Name("self"), name)], value) if _makes_set(value):
                yield name, A_SET


def _kinds(annotation: ast.expr) -> str:
    return ast.unparse(_unquoted(annotation)).replace("Set[", "set[").split("[")[0]


def _unquoted(annotation: ast.expr) -> ast.expr:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _makes_set(value: ast.expr) -> bool:
    match value:
        case ast.Set() | ast.SetComp() | ast.Call(ast.Name("set" | "frozenset")):
            return True
    return False


def _head(annotation: Type) -> tuple[str, list[ast.expr]]:
    """`dict[K, set[V]]` → `"dict"`, `[K, set[V]]`; an optional is what it is when it's there."""
    match _unquoted(annotation) if annotation is not None else None:
        case ast.BinOp(left, ast.BitOr(), ast.Constant(None)):
            return _head(left)
        case ast.BinOp(ast.Constant(None), ast.BitOr(), right):
            return _head(right)
        case ast.Subscript(value, ast.Tuple(elements)):
            return _head(value)[0], elements
        case ast.Subscript(value, element) if _head(value)[0] in ("Final", "ClassVar"):
            return _head(element)
        case ast.Subscript(value, element):
            return _head(value)[0], [element]
        case ast.Name(name) | ast.Attribute(attr=name):
            return name, []
    return "", []


class _Scope(ast.NodeVisitor):
    """Reads one function (or the module) in order; nested functions are left for later."""

    def __init__(self, source: Source, attributes: Types, outer: Types) -> None:
        self.source, self.attributes = source, attributes
        self.names = dict(outer)
        self.findings: list[Finding] = []
        self.inner: list[Function] = []
        self.harmless: set[int] = set()  # generators whose order nobody sees

    def read(self, scope: ast.AST) -> None:
        """Visit what `scope` contains."""
        if isinstance(scope, Function):
            for argument in [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]:
                self.learn(argument.arg, argument.annotation)
        self.generic_visit(scope)

    def learn(self, name: str, type_: Type) -> None:
        """From here on, `name` has that type, or one we don't know."""
        self.names.pop(name, None)
        if type_ is not None:
            self.names[name] = type_

    # --- what is known ---------------------------------------------------------------------

    def type_of(self, node: ast.expr) -> Type:
        """The annotation that `node` would deserve, as far as we can tell."""
        match node:
            case _ if _makes_set(node):
                return A_SET
            case ast.Name(name):
                return self.names.get(name)
            case ast.Attribute(attr=name):
                return self.attributes.get(name)
            case ast.BinOp(left, op, right) if isinstance(op, SET_OPERATORS):
                return A_SET if self.is_set(left) or self.is_set(right) else None
            case ast.BoolOp(values=[first, *_]) | ast.IfExp(body=first):
                return self.type_of(first)
            case ast.NamedExpr(value=value):
                return self.type_of(value)
            case ast.Subscript(value):
                return self.item_of(value)
            case ast.Call(ast.Attribute(value, method)):
                if method in SET_METHODS and self.is_set(value):
                    return A_SET
                if method in ("get", "pop", "setdefault", "popleft", "pop_first"):
                    return self.item_of(value)
        return None

    def is_set(self, node: ast.expr) -> bool:
        """Whether `node` is certainly a set."""
        return _head(self.type_of(node))[0] in SETS

    def item_of(self, node: ast.expr) -> Type:
        """What `node[...]` is: a mapping's value, a sequence's element."""
        name, parameters = _head(self.type_of(node))
        if name in MAPPINGS and len(parameters) == 2:
            return parameters[1]
        return parameters[0] if name in SEQUENCES and parameters else None

    def learn_target(self, target: ast.expr, iterable: ast.expr) -> None:
        """What a loop's variable is, from what is looped over."""
        match target, iterable:
            case ast.Name(name), ast.Call(ast.Attribute(mapping, "values"), []):
                self.learn(name, self.item_of(mapping))
            case ast.Tuple([_, ast.Name(name)]), ast.Call(ast.Attribute(mapping, "items"), []):
                self.learn(name, self.item_of(mapping))
            case ast.Name(name), _:
                mapping = _head(self.type_of(iterable))[0] in MAPPINGS
                self.learn(name, None if mapping else self.item_of(iterable))

    # --- what is looked at -----------------------------------------------------------------

    def forbid(self, node: ast.expr, how: str) -> None:
        """Note a finding if `node` is a set."""
        if self.is_set(node):
            problem = f"{how} the set {ast.unparse(node)}: use an OrderedSet, or sorted()"
            self.findings.append(self.source.finding(node, problem))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.inner.append(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.inner.append(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.learn(target.id, self.type_of(node.value))
            elif isinstance(target, ast.Tuple | ast.List):
                self.forbid(node.value, "unpacks")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            self.learn(node.target.id, node.annotation)

    def visit_For(self, node: ast.For) -> None:
        self.forbid(node.iter, "loops over")
        self.learn_target(node.target, node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        if isinstance(node.ctx, ast.Load):
            self.forbid(node.value, "unpacks")
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self.forbid(node.value, "yields from")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        if name in ORDER_LOST:
            self.harmless.update(id(argument) for argument in node.args)
        if name in ORDER_MATTERS:
            for argument in node.args:
                self.forbid(argument, f"{name}() of")
        if isinstance(function, ast.Attribute) and name == "pop" and not node.args:
            self.forbid(function.value, "takes any item of")
        self.generic_visit(node)

    def _visit_generators(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            if id(node) not in self.harmless:
                self.forbid(generator.iter, "loops over")
            self.learn_target(generator.target, generator.iter)
        self.generic_visit(node)

    visit_ListComp = _visit_generators  # noqa: N815 -- ast.NodeVisitor looks for these names
    visit_GeneratorExp = _visit_generators  # noqa: N815
    visit_DictComp = _visit_generators  # noqa: N815
