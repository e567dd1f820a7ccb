"""The mutants of a module: mutmut's operators on each node, and three of our own. Needs what `make mutants` installs.

mutmut's own driver leaves out decorated functions, classes and all that stands outside of functions, which is where
tables of rules stand; hence only its operators are used.

Not changed: annotations and names of types, docstrings, imports, decorators, the words behind a class's bases, and
texts for people (any string with a blank in it), which no rule reads.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import libcst as cst
import libcst.matchers as m
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

from .mutant import Mutant, difference

_LEFT_ALONE = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom)
_NEVER_CALLED_OTHERWISE = m.Call(func=m.Name("len") | m.Name("isinstance") | m.Name("cast") | m.Name("TypeVar"))
_DOCSTRING = m.Expr(value=m.SimpleString() | m.ConcatenatedString())
_TYPES_ONLY = m.If(test=m.Name("TYPE_CHECKING")) | m.Assign(value=m.Subscript(value=m.Name()))
"""Imports for annotations, and names of types."""
_NEGATED_ALREADY = m.Comparison(
    comparisons=[m.ComparisonTarget(operator=m.Equal() | m.NotEqual() | m.In() | m.NotIn() | m.Is() | m.IsNot())]
) | m.UnaryOperation(operator=m.Not())
_DISPLAYS = (cst.List, cst.Set, cst.Dict)


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """Return a module's mutants, in the order of their places; each compiles."""
    source = (root / file).read_text()
    visitor = _Visitor()
    MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True).visit(visitor)
    found: dict[str, Mutant] = {}
    for change in visitor.changes:
        text = change.applied_to(source)
        if text is not None and text != source and text not in found:
            was, now = difference(source, text)
            found[text] = Mutant(file, change.line, change.function, was, now, text)
    return list(found.values())


class _Change:
    """One node in place of another."""

    def __init__(self, visitor: "_Visitor", old: cst.CSTNode, new: cst.CSTNode) -> None:
        span = visitor.get_metadata(ByteSpanPositionProvider, old)
        self.start, self.end = span.start, span.start + span.length
        self.line = visitor.get_metadata(PositionProvider, old).start.line
        self.function = visitor.function
        self.code = cst.Module([]).code_for_node(new)

    def applied_to(self, source: str) -> str | None:
        """Return the changed source; None where it is no Python."""
        data = source.encode()
        text = (data[: self.start] + self.code.encode() + data[self.end :]).decode()
        try:
            compile(text, "mutant", "exec")
        except SyntaxError:
            return None
        return text


class _Visitor(cst.CSTVisitor):
    """Walks a module and notes each change of a node."""

    METADATA_DEPENDENCIES = (PositionProvider, ByteSpanPositionProvider)

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[_Change] = []
        self.names: list[str] = []
        self.in_body = 0
        self.outside: list[cst.CSTNode] = []
        self.keywords: list[cst.CSTNode] = []

    @property
    def function(self) -> str:
        """The outermost function that a change lies in; a default of a parameter lies in none."""
        return ".".join(self.names) if self.in_body else ""

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _LEFT_ALONE) or any(node is one for one in self.keywords):
            return False
        if m.matches(node, _NEVER_CALLED_OTHERWISE | _DOCSTRING | _TYPES_ONLY):
            return False
        if isinstance(node, cst.ClassDef):
            self.keywords += node.keywords
        if isinstance(node, cst.FunctionDef | cst.ClassDef) and not self.in_body:
            self.names.append(node.name.value)
            if isinstance(node, cst.FunctionDef):
                self.outside.append(node.body)
        if self.outside and node is self.outside[-1]:
            self.in_body += 1
        for old, new in _changes(node, at_top=not self.in_body):
            self.changes.append(_Change(self, old, new))
        return not _is_prose(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self.outside and original_node is self.outside[-1]:
            self.outside.pop()
            self.in_body -= 1
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef) and not self.in_body:
            self.names.pop()


def _changes(node: cst.CSTNode, *, at_top: bool) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    if _is_prose(node):
        return
    for kind, operator in mutation_operators:
        if isinstance(node, kind) and not isinstance(node, cst.Match):
            for changed in _taken(node, operator):
                yield node, changed
    if isinstance(node, cst.If | cst.While | cst.IfExp | cst.CompIf) and not m.matches(node.test, _NEGATED_ALREADY):
        yield node.test, cst.UnaryOperation(cst.Not(), _in_parentheses(node.test))
    if isinstance(node, _DISPLAYS) or (isinstance(node, cst.Tuple) and at_top):
        yield from ((node, changed) for changed in _shorter(node))
    if m.matches(node, m.Expr(value=m.Call() | m.Yield())):
        yield node, cst.Pass()


def _taken(node: cst.CSTNode, operator: Callable[[Any], Iterable[cst.CSTNode]]) -> Iterator[cst.CSTNode]:
    """What mutmut makes of a node: of a string one change, and no text for people made None."""
    if isinstance(node, cst.SimpleString):
        yield from list(operator(node))[:1]
    elif isinstance(node, cst.Call):
        prose = [cst.Module([]).code_for_node(arg.value) for arg in node.args if _is_prose(arg.value)]
        for changed in operator(node):
            code = [cst.Module([]).code_for_node(arg.value) for arg in getattr(changed, "args", ())]
            if all(text in code for text in prose):
                yield changed
    else:
        yield from operator(node)


def _is_prose(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.ConcatenatedString):
        return True
    if isinstance(node, cst.FormattedString):
        return any(isinstance(part, cst.FormattedStringText) and " " in part.value for part in node.parts)
    return isinstance(node, cst.SimpleString) and " " in node.value


def _in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    return node if node.lpar else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _shorter(node: Any) -> Iterator[cst.CSTNode]:
    """Leave out each element of a table in turn."""
    if len(node.elements) > 1:
        for n in range(len(node.elements)):
            kept = [*node.elements[:n], *node.elements[n + 1 :]]
            yield node.with_changes(elements=[*kept[:-1], kept[-1].with_changes(comma=cst.Comma())])
