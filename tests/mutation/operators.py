"""Mechanical mutants of a source: each comparison, number, operator and call, one at a time.

A mutant is addressed by its function, the kind of change and its place among the changes of that
kind in the function, so that other edits of the file do not move it.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "max", "median": "min"}


Path = tuple[tuple[str, int | None], ...]
"""From the module to a node: the field of each node on the way, and the index in it."""


@dataclass(frozen=True)
class Mutant:
    """A change of a module's source."""

    function: str  # qualified name; "" at the top of the module
    change: str  # such as "Lt to LtE"
    number: int  # among the same changes in the same function
    line: int
    tree: ast.Module  # as it is
    path: Path
    apply: Callable[..., None]

    def source(self) -> str:
        """The changed source, without comments."""
        changed = deepcopy(self.tree)
        self.apply(_at(changed, self.path))
        return ast.unparse(changed)

    def __str__(self) -> str:
        return f"line {self.line}, {self.function or 'module'}: {self.change}"


def mutants_of(source: str) -> Iterator[Mutant]:
    """All mutants of a module's source, in the order of its text."""
    tree = ast.parse(source)
    seen: Counter[tuple[str, str]] = Counter()
    for function, path in _nodes(tree):
        node = _at(tree, path)
        for change, apply in _changes(node):
            number = seen[function, change]
            seen[function, change] += 1
            yield Mutant(function, change, number, node.lineno, tree, path, apply)


def _at(tree: ast.AST, path: Path) -> ast.expr | ast.stmt:
    node: ast.AST = tree
    for name, index in path:
        value = getattr(node, name)
        node = value if index is None else value[index]
    assert isinstance(node, (ast.expr, ast.stmt))
    return node


def _nodes(node: ast.AST, function: str = "", path: Path = ()) -> Iterator[tuple[str, Path]]:
    """The expressions and statements below a node that may be changed, with their functions."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            step = (*path, (name, index))
            if isinstance(child, (ast.expr, ast.stmt)):
                yield function, step
            own = getattr(child, "name", "") if isinstance(child, _SCOPES) else ""
            yield from _nodes(child, ".".join(filter(None, (function, own))), step)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_left_alone(node: ast.AST) -> bool:
    """Docstrings, and what only type checkers run."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[..., None]]]:
    """The changes of one node: what they are called, and a function that makes them."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            other = COMPARISONS[type(operator)]

            def compare(node: ast.Compare) -> None:
                node.ops = [other()]

            yield f"{type(operator).__name__} to {other.__name__}", compare
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            swapped = OPERATORS.get(type(operator))
            texts = ast.Constant | ast.JoinedStr
            if swapped and not isinstance(getattr(node, "left", None), texts):

                def operate(node: ast.BinOp) -> None:
                    node.op = swapped()

                yield f"{type(operator).__name__} to {swapped.__name__}", operate
        case ast.Constant(value=bool() as truth):

            def turn(node: ast.Constant) -> None:
                node.value = not truth

            yield f"{truth} to {not truth}", turn
        case ast.Constant(value=int() as number):

            def increase(node: ast.Constant) -> None:
                node.value = number + 1

            yield f"{number} to {number + 1}", increase
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:

            def call(node: ast.Call) -> None:
                node.func = ast.Name(CALLS[name], ast.Load())

            yield f"{name} to {CALLS[name]}", call
        case ast.UnaryOp(op=ast.Not()):

            def affirm(node: ast.UnaryOp) -> None:
                node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)

            yield "without not", affirm
        case ast.If(test=test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):

            def negate(node: ast.If) -> None:
                node.test = ast.UnaryOp(ast.Not(), node.test)

            yield "condition negated", negate
