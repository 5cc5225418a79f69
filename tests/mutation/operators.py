"""Mechanical mutants of a source: each comparison, number, operator and call, one at a time.

A mutant is addressed by its function, the kind of change and its place among the changes of that
kind in the function, so that other edits of the file do not move it.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Mutant:
    """A change of a module's source: one attribute of one node gets another value."""

    function: str  # qualified name; "" at the top of the module
    change: str  # such as "Lt to LtE"
    number: int  # among the same changes in the same function
    tree: ast.Module
    node: Any
    attribute: str
    value: Any

    def source(self) -> str:
        """The changed source, without comments."""
        original = getattr(self.node, self.attribute)
        setattr(self.node, self.attribute, self.value)
        try:
            return ast.unparse(self.tree)
        finally:
            setattr(self.node, self.attribute, original)

    def __str__(self) -> str:
        return f"line {self.node.lineno}, {self.function or 'module'}: {self.change}"


def mutants_of(source: str) -> Iterator[Mutant]:
    """All mutants of a module's source, in the order of its text."""
    tree = ast.parse(source)
    seen: Counter[tuple[str, str]] = Counter()
    for function, node in _nodes(tree):
        for change, attribute, value in _changes(node):
            yield Mutant(function, change, seen[function, change], tree, node, attribute, value)
            seen[function, change] += 1


def _nodes(node: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The nodes below a node that may be changed, with their functions."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield function, child
                own = child.name if isinstance(child, SCOPES) else ""
                yield from _nodes(child, ".".join(filter(None, (function, own))))


def _is_left_alone(node: ast.AST) -> bool:
    """Docstrings, and what only type checkers run."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[tuple[str, str, Any]]:
    """The changes of one node: what each is called, the attribute and its other value."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            other = COMPARISONS[type(operator)]
            yield f"{type(operator).__name__} to {other.__name__}", "ops", [other()]
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            swapped = OPERATORS.get(type(operator))
            texts = ast.Constant | ast.JoinedStr
            if swapped and not isinstance(getattr(node, "left", None), texts):
                yield f"{type(operator).__name__} to {swapped.__name__}", "op", swapped()
        case ast.Constant(value=bool() as truth):
            yield f"{truth} to {not truth}", "value", not truth
        case ast.Constant(value=int() as number):
            yield f"{number} to {number + 1}", "value", number + 1
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield f"{name} to {CALLS[name]}", "func", ast.Name(CALLS[name], ast.Load())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "without not", "operand", ast.UnaryOp(ast.Not(), operand)
        case ast.If(test=test) if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield "condition negated", "test", ast.UnaryOp(ast.Not(), test)
