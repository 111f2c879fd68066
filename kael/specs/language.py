"""The expression language: which syntax is allowed, and the steps it becomes.

A tree is walked once and turned into a flat list of steps for a stack machine, so that evaluating
needs no recursion and no tree. Nothing is ever evaluated by Python. What a step does when it runs
is in `steps.py`; reading the text is `syntax.py`'s.
"""

import ast
from collections.abc import Collection, Sequence
from typing import Any

from kael.ops.declare import Composite, Operation
from kael.ops.names import FAMILIES
from kael.ops.registry import lookup
from kael.specs import steps
from kael.specs.creation import CREATORS, Creator
from kael.specs.place import SpecError
from kael.specs.spelling import did_you_mean
from kael.specs.steps import Apply
from kael.specs.syntax import MAX_NESTING, Pieces, Text

Called = Operation | Composite | Creator
CONSTANTS: dict[str, float] = {
    "pi": 3.141592653589793,
    "e": 2.718281828459045,
    "inf": float("inf"),
    "nan": float("nan"),
}
ATTRIBUTES = ("T", "mT", "shape", "ndim")
# What programs write that expressions do not: modules, typed or drawn numbers, NumPy's arguments.
MODULES = ("torch", "np", "numpy", "jnp", "math", "F", "kael")
TYPED = {
    "tensor": "tensor([1, 2])",
    "array": "[1, 2]",
}
DRAWN = {
    "rand": "uniform(0, 1, shape=[2, 3])",
    "randn": "randn(2, 3)",
    "uniform": "uniform(0, 1, shape=[2, 3])",
    "rand_like": "uniform(0, 1, shape=[2, 3])",
    "randn_like": "randn(2, 3)",
}
NUMPY_ARGUMENTS = {"axis": "dim", "axes": "dims", "keepdims": "keepdim", "ddof": "correction"}
ALLOWED = (
    "an expression is made of numbers, names, + - * / // % ** @, comparisons, & | ~, calls of "
    "operations,\nlists and tuples as arguments, indexing, and the attributes "
    ".T .mT .shape .ndim"
)
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.BoolOp: ("'and' and 'or' are not allowed", "use & and | between booleans"),
    ast.IfExp: ("'if … else' is not allowed", "use where(condition, a, b)"),
    ast.Lambda: ("a lambda is not allowed", ALLOWED),
    ast.NamedExpr: (":= is not allowed", "name intermediates under let"),
    ast.ListComp: ("a comprehension is not allowed", ALLOWED),
    ast.SetComp: ("a comprehension is not allowed", ALLOWED),
    ast.DictComp: ("a comprehension is not allowed", ALLOWED),
    ast.GeneratorExp: ("a generator expression is not allowed", ALLOWED),
    ast.JoinedStr: ("an f-string is not allowed", ALLOWED),
    ast.Dict: ("a dictionary is not allowed", ALLOWED),
    ast.Set: ("a set is not allowed", ALLOWED),
    ast.Starred: ("* before an argument is not allowed", ALLOWED),
    ast.Await: ("await is not allowed", ALLOWED),
    ast.Yield: ("yield is not allowed", ALLOWED),
    ast.YieldFrom: ("yield is not allowed", ALLOWED),
}


class Step:
    """One step of an expression: what it does to the stack, and the text it stands for."""

    __slots__ = ("apply", "end", "start")

    def __init__(self, apply: Apply, start: int, end: int) -> None:
        self.apply = apply
        self.start = start
        self.end = end


class Visit:
    """A node that waits for its turn, with its depth and what its surroundings allow.

    `inside` is "argument", "index", or empty elsewhere; `string` tells whether a string literal
    may stand here.
    """

    __slots__ = ("depth", "inside", "node", "string")

    def __init__(self, node: ast.expr, depth: int, inside: str = "", string: bool = False) -> None:
        self.node = node
        self.depth = depth
        self.inside = inside
        self.string = string


class Program:
    """The steps of an expression and the names it uses, from a checked walk over its tree."""

    def __init__(self, text: Text, names: Collection[str] | None) -> None:
        self.text = text
        self.known = names
        self.pieces = Pieces(text)
        self.names: dict[str, int] = {}
        self.steps: list[Step] = []
        work: list[Visit | Step] = [Visit(self.pieces.root(), 1)]
        while work:
            item = work.pop()
            if isinstance(item, Step):
                self.steps.append(item)
                continue
            if item.depth > MAX_NESTING:
                raise self.error(f"the expression nests over {MAX_NESTING:,} levels", item.node)
            work.extend(self.visit(item))

    def error(
        self, message: str, node: ast.expr | ast.keyword, hint: str | None = None
    ) -> SpecError:
        """Return the error that points at a node."""
        return self.text.error(message, node.col_offset, hint)

    def visit(self, item: Visit) -> list[Visit | Step]:
        """Return a node's own step and its operands, in the order of a stack: last comes first."""
        node, depth = item.node, item.depth
        match node:
            case ast.Constant():
                return [self.step(self.constant(node, item), node)]
            case ast.Name():
                return self.name(node, item)
            case ast.BinOp():
                symbol = BINARY.get(type(node.op))
                if symbol is None:
                    raise self.unknown_operator(node)
                # A chain's left operands stay at one depth.
                left = depth if isinstance(node.left, (ast.BinOp, ast.Name)) else depth + 1
                step = self.step(steps.binary(symbol), node)
                return [step, Visit(node.right, depth + 1), Visit(node.left, left)]
            case ast.UnaryOp():
                return [self.step(self.unary(node), node), Visit(node.operand, depth + 1)]
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.Call():
                return self.call(node, depth)
            case ast.Attribute():
                return [self.step(self.attribute(node), node), Visit(node.value, depth + 1)]
            case ast.Subscript():
                return self.subscript(node, depth)
            case ast.List() | ast.Tuple() if item.inside:
                build = steps.build(list if isinstance(node, ast.List) else tuple, len(node.elts))
                inside: list[Visit | Step] = [
                    Visit(child, depth + 1, item.inside) for child in reversed(node.elts)
                ]
                return [self.step(build, node), *inside]
            case ast.List() | ast.Tuple():
                kind = "list" if isinstance(node, ast.List) else "tuple"
                raise self.error(f"a {kind} may stand only in an argument or an index", node)
            case ast.Slice():
                parts = (node.lower, node.upper, node.step)
                given = [part for part in parts if part is not None]
                step = self.step(steps.slicing(tuple(part is not None for part in parts)), node)
                return [step, *(Visit(part, depth + 1) for part in reversed(given))]
        message, hint = REFUSED.get(type(node), (f"{type(node).__name__} is not allowed", ALLOWED))
        raise self.error(message, node, hint)

    def step(self, apply: Apply, node: ast.expr) -> Step:
        """Return a step that stands for a node's text."""
        return Step(apply, node.col_offset, node.end_col_offset or node.col_offset)

    def constant(self, node: ast.Constant, item: Visit) -> Apply:
        """Return the step that pushes a literal."""
        value = node.value
        if value is None or isinstance(value, (bool, float)):
            return steps.push(value)
        if isinstance(value, int):
            if value.bit_length() > steps.MAX_BITS:
                raise self.error("an integer beyond the range of a float", node)
            return steps.push(value)
        if value is ...:
            if item.inside != "index":
                raise self.error("... may stand only in an index", node)
            return steps.push(value)
        if isinstance(value, str):
            if not item.string:
                raise self.error(
                    "a string may stand only where an operation takes one "
                    "(einsum, the approximate of gelu)",
                    node,
                )
            return steps.push(value)
        kind = "a complex number" if isinstance(value, complex) else "a bytes literal"
        raise self.error(f"{kind} is not allowed", node, ALLOWED)

    def name(self, node: ast.Name, item: Visit) -> list[Visit | Step]:
        """Return the step that pushes the value of a name: an input, a let name, a constant."""
        head = self.pieces.head(node)
        if head is not None:
            return [Visit(head, item.depth)]
        name = node.id
        if self.known is None or name in self.known:
            if self.known is not None or name not in CONSTANTS:
                self.names.setdefault(name, node.col_offset)
            return [self.step(steps.load(name, CONSTANTS.get(name)), node)]
        if name in CONSTANTS:
            return [self.step(steps.push(CONSTANTS[name]), node)]
        if find(name) is not None:
            raise self.error(f"'{name}' is an operation; call it: {name}(…)", node)
        near = did_you_mean(name, [*self.known, *CONSTANTS])
        raise self.error(f"unknown name '{name}'{near}", node, names_hint(self.known))

    def unknown_operator(self, node: ast.BinOp) -> SpecError:
        """Return the error for an operator of Python that the language has not."""
        symbols = {ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
        symbol = symbols.get(type(node.op), type(node.op).__name__)
        gap = self.text.text.find(symbol, node.left.end_col_offset or 0)
        hint = "a power is written **" if symbol == "^" else ALLOWED
        return self.text.error(f"the operator {symbol} is not allowed", max(gap, 0), hint)

    def unary(self, node: ast.UnaryOp) -> Apply:
        """Return the step of `-` or `~`."""
        if isinstance(node.op, ast.USub):
            return steps.negative
        if isinstance(node.op, ast.Invert):
            return steps.inverted
        if isinstance(node.op, ast.Not):
            raise self.error("'not' is not allowed", node, "use ~ on booleans")
        raise self.error("a + in front of an operand is not allowed", node, "leave it out")

    def comparison(self, node: ast.Compare, depth: int) -> list[Visit | Step]:
        """Return the steps of one comparison of two operands."""
        symbol = COMPARISONS.get(type(node.ops[0]))
        if symbol is None:
            word = "is" if isinstance(node.ops[0], (ast.Is, ast.IsNot)) else "in"
            raise self.error(f"'{word}' is not allowed", node, "compare with == != < <= > >=")
        if len(node.ops) > 1:
            raise self.error("a chained comparison is not allowed", node, "write (a < b) & (b < c)")
        step = self.step(steps.binary(symbol), node)
        return [step, Visit(node.comparators[0], depth + 1), Visit(node.left, depth + 1)]

    def attribute(self, node: ast.Attribute) -> Apply:
        """Return the step of `.T`, `.mT`, `.shape` or `.ndim`."""
        name = node.attr
        if name in ATTRIBUTES:
            return steps.attribute(name)
        self.refuse_module(node, certain=name in CONSTANTS)
        at = (node.end_col_offset or 0) - len(name)
        if find(name) is not None:
            message = f"'{name}' is an operation; call it: .{name}()"
        else:
            message = f"unknown attribute '{name}'{did_you_mean(name, ATTRIBUTES)}"
        raise self.text.error(message, at, "the attributes are .T .mT .shape .ndim")

    def subscript(self, node: ast.Subscript, depth: int) -> list[Visit | Step]:
        """Return the steps of indexing; the items of a tuple are indices each."""
        index = node.slice
        if isinstance(index, ast.Tuple):
            children = [Visit(child, depth + 1, "index") for child in index.elts]
        else:
            children = [Visit(index, depth + 1, "index")]
        many = isinstance(index, ast.Tuple)
        step = self.step(steps.index(len(children), many), node)
        return [step, *reversed(children), Visit(node.value, depth + 1)]

    def call(self, node: ast.Call, depth: int) -> list[Visit | Step]:
        """Return the steps of an operation called as a function or as a method."""
        function = node.func
        receiver: list[ast.expr] = []
        if isinstance(function, ast.Attribute):
            receiver = [function.value]
            name = function.attr
            at = (function.end_col_offset or 0) - len(name)
            operation = find(name)
            given = len(node.args) + len(node.keywords)
            certain = operation is not None and given >= len(operation.parameters)
            self.refuse_module(function, certain)
        elif isinstance(function, ast.Name):
            name, at = function.id, function.col_offset
        else:
            raise self.error("only an operation can be called", node, ALLOWED)
        operation = find(name)
        if operation is None:
            raise self.unknown_operation(name, at, bool(receiver))
        if receiver and not operation.method:
            raise self.text.error(f"'{name}' is not a method; call it as a function: {name}(…)", at)
        arguments = receiver + node.args
        keywords = self.keywords(node, operation)
        self.check_count(node, operation, arguments, keywords, at)
        strings = [parameter in operation.strings for parameter in operation.parameters]
        children: list[Visit | Step] = [
            Visit(child, depth + 1, "argument", position < len(strings) and strings[position])
            for position, child in enumerate(arguments)
        ]
        children += [
            self.step(steps.push(keyword.value.id), keyword.value)
            if keyword.arg == "dtype" and isinstance(keyword.value, ast.Name)
            else Visit(keyword.value, depth + 1, "argument", keyword.arg in operation.strings)
            for keyword in node.keywords
        ]
        if isinstance(operation, Creator):
            run = steps.create(operation, len(arguments), keywords)
        else:
            run = steps.call(operation, len(arguments), keywords)
        step = self.step(run, node)
        return [step, *reversed(children)]

    def unknown_operation(self, name: str, at: int, method: bool) -> SpecError:
        """Return the error for a call of something that is no operation."""
        if not method and self.known is not None and name in self.known:
            return self.text.error(f"'{name}' is a tensor and cannot be called", at)
        if method and name in ATTRIBUTES:
            return self.text.error(f"'.{name}' is an attribute; write it without ()", at)
        if name.startswith("_"):
            return self.text.error(f"unknown operation '{name[:100]}'", at, ALLOWED)
        if not method and name in TYPED | DRAWN:
            what = "draws no random numbers" if name in DRAWN else "holds no arrays"
            value = (TYPED | DRAWN)[name]
            hint = f"an expression {what}; make it an input, with the value {value}"
            return self.text.error(f"unknown operation '{name}'", at, hint)
        near = did_you_mean(name, sorted(callable_names()))
        return self.text.error(
            f"unknown operation '{name[:100]}'{near}",
            at,
            None if near else "kael ops lists them all",
        )

    def refuse_module(self, node: ast.Attribute, certain: bool) -> None:
        """Refuse `torch.exp(x)`: the module would be taken for a tensor, and `exp` for its method.

        `certain` says that the name cannot be a tensor's; it decides where inputs are not known.
        """
        root = node.value
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in MODULES:
            return
        if certain if self.known is None else root.id not in self.known:
            hint = f"operations and constants stand without a module: {node.attr}"
            raise self.error(f"'{root.id}' is not an input", root, hint)

    def keywords(self, node: ast.Call, operation: Called) -> tuple[str, ...]:
        """Return the names of the keyword arguments of a call, all known to the operation."""
        names: list[str] = []
        for keyword in node.keywords:
            name = keyword.arg
            if name is None:
                raise self.error("** before an argument is not allowed", keyword, ALLOWED)
            if name in names:
                raise self.error(f"{operation.name}: argument '{name}' is given twice", keyword)
            if name not in operation.parameters:
                meant = NUMPY_ARGUMENTS.get(name)
                near = (
                    f"; did you mean '{meant}'?"
                    if meant in operation.parameters
                    else did_you_mean(name, operation.parameters)
                )
                raise self.error(
                    f"{operation.name}: unknown argument '{name}'{near}",
                    keyword,
                    f"the signature is {operation.signature}",
                )
            names.append(name)
        return tuple(names)

    def check_count(
        self,
        node: ast.Call,
        operation: Called,
        arguments: Sequence[ast.expr],
        keywords: tuple[str, ...],
        at: int,
    ) -> None:
        """Refuse too many, doubled or missing arguments."""
        hint = f"the signature is {operation.signature}"
        for argument in arguments:
            if isinstance(argument, ast.Starred):
                raise self.error(REFUSED[ast.Starred][0], argument, ALLOWED)
        parameters = operation.parameters
        places = len(parameters) - isinstance(operation, Creator)  # its dtype is given by name
        if len(arguments) > places and operation.rest is None:
            raise self.error(
                f"{operation.name} takes at most {places} "
                f"argument{'s' * (places != 1)}, got {len(arguments)}",
                arguments[places],
                hint,
            )
        most = None if operation.rest is None else parameters.index(operation.rest) + 1
        positional = parameters[:most][: len(arguments)]
        for keyword in node.keywords:
            if keyword.arg in positional:
                raise self.error(
                    f"{operation.name}: argument '{keyword.arg}' is given twice", keyword, hint
                )
        given = {*positional, *keywords, *operation.defaults}
        missing = [name for name in parameters if name not in given]
        if missing:
            raise self.text.error(f"{operation.name}: argument '{missing[0]}' is missing", at, hint)


def find(name: str) -> Called | None:
    """Return the operation an expression may call by a name, or what makes a constant.

    In-place operations are left out: an expression that wrote to its inputs would have no value.
    """
    operation = None if name.endswith("_") else lookup(name)
    if operation is None:
        return CREATORS.get(name)
    return operation if getattr(operation, "is_function", True) else None


def callable_names() -> set[str]:
    """Return every name an expression may call."""
    return {name for name in FAMILIES if find(name) is not None} | CREATORS.keys()


def names_hint(names: Collection[Any]) -> str | None:
    """Return the line that lists the names an expression may use."""
    if not names:
        return None
    shown = ", ".join(sorted(map(str, names))[:12])
    return f"the names here are {shown}" + (", …" if len(names) > 12 else "")
