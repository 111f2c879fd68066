"""Specs from YAML: what each key means, and everything that can be wrong with it, with its place.

A spec that is wrong never hides the others of its file: `load` returns what is right and one error
for each that is not.
"""

import keyword
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from kael import dtypes
from kael.specs import keys
from kael.specs.expression import Expression, parse
from kael.specs.inputs import Input, check_fields
from kael.specs.literals import read_nested
from kael.specs.model import EXPECT_ATOL, EXPECT_RTOL, MODES, Case, Expect, Golden, Spec
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean
from kael.specs.values import parse_value, without_dots
from kael.specs.yaml_text import (
    Node,
    Source,
    decode,
    describe,
    is_null,
    is_text,
    kind_of,
    number_of,
)

Entries = dict[str, tuple[Node, Node]]


class Loaded(NamedTuple):
    """What a file gave: its specs, an error for each that is wrong, and notes."""

    specs: list[Spec]
    errors: list[SpecError]
    notes: list[str] = []  # noqa: RUF012 (never written to)


def load(path: str, shown: str | None = None) -> Loaded:
    """Read the specs of a YAML file; `shown` is its name in places."""
    shown = (shown or path).replace(os.sep, "/")
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        return Loaded([], [SpecError(message, Place(shown))])
    stem = os.path.splitext(os.path.basename(path))[0]
    return load_bytes(data, stem, shown, folder=os.path.dirname(path))


def load_bytes(
    data: bytes, stem: str, file: str | None, label: str = "", folder: str = ""
) -> Loaded:
    """Read the specs of a YAML text; `stem` names those that have no name."""
    try:
        source = Source(decode(data, file, label), file, label)
        drafts = list(split(source))
    except SpecError as error:
        return Loaded([], [error])
    return read_all(drafts, stem, file, folder)


class Draft(NamedTuple):
    """A spec's keys as they stand in the file, with those of the defaults under them."""

    source: Source
    node: Node
    defaults: Entries


def split(source: Source) -> list[Draft]:
    """Return the specs of a text: one a document, or those under `specs:`."""
    drafts: list[Draft] = []
    for root in source.documents():
        if kind_of(root) == "list":
            raise source.error(
                "a spec is a mapping, got a list", root, "put a list of specs under `specs:`"
            )
        entries = source.entries(root, "a spec")
        if "specs" not in entries:
            if "defaults" in entries:
                raise source.error(
                    "'defaults' goes with 'specs'", entries["defaults"][0], "put the list under it"
                )
            drafts.append(Draft(source, root, {}))
            continue
        source.known(entries, keys.FILE, "a file with 'specs'")
        listed = source.items(entries["specs"][1])
        if not listed:
            found = "an empty one" if listed is not None else describe(entries["specs"][1])
            raise source.error(f"'specs' must be a list of specs, got {found}", entries["specs"][1])
        defaults: Entries = {}
        if "defaults" in entries:
            defaults = source.entries(entries["defaults"][1], "defaults")
            source.known(defaults, [key for key in keys.SPEC if key != "name"], "defaults")
        drafts += [Draft(source, node, defaults) for node in listed]
    if not drafts:
        raise SpecError(
            "the file is empty", source.start.at(None, None),
            hint="a spec has at least `inputs:` and `output:`",
        )  # fmt: skip
    return drafts


def read_all(drafts: list[Draft], stem: str, file: str | None, folder: str) -> Loaded:
    """Read each spec, name those that have no name, and refuse a name given twice."""
    specs: list[Spec] = []
    errors: list[SpecError] = []
    seen: dict[str, int | None] = {}
    unnamed = 0
    for draft in drafts:
        name = None
        try:
            reader = SpecReader(draft, file, folder)
            name, place = reader.name()
            if name is None:
                unnamed += 1
                name = stem if len(drafts) == 1 else f"{stem}-{unnamed}"
            if name in seen:
                raise SpecError(
                    f"the name '{name}' is given to two specs of this file", place,
                    hint=f"the first is on line {seen[name]}",
                )  # fmt: skip
            seen[name] = place.line
            specs.append(reader.spec(name))
        except SpecError as error:
            error.spec = name
            same = [earlier for earlier in errors if str(earlier) == str(error)]
            for earlier in same:
                earlier.spec = None  # in the defaults: the fault of no one spec
            if not same:
                errors.append(error)
    return Loaded(specs, errors)


class SpecReader:
    """One spec of a YAML file, key by key."""

    def __init__(self, draft: Draft, file: str | None, folder: str) -> None:
        self.source = draft.source
        self.node = draft.node
        self.file = file
        self.folder = folder
        self.own = self.source.entries(draft.node, "a spec")
        self.source.known(self.own, keys.SPEC, "a spec")
        self.defaults = draft.defaults
        self.all = {**draft.defaults, **self.own}

    def name(self) -> tuple[str | None, Place]:
        """Return the name, None where none is given, and the place to blame for it."""
        if "name" not in self.own:
            return None, self.source.place(self.node)
        node = self.own["name"][1]
        return self.one_line(self.source.text_of(node, "name").strip(), node), self.source.place(
            node
        )

    def one_line(self, name: str, node: Node) -> str:
        """Return a name that can stand in a line of a report."""
        if not name.strip() or not name.isprintable():
            raise self.source.error("a name is one line of text", node)
        return name

    def spec(self, name: str) -> Spec:
        """Return the spec; raises `SpecError` at the first thing wrong with it."""
        for required in ("inputs", "output"):
            if required not in self.all:
                raise self.source.error(
                    f"the key '{required}' is missing", self.node,
                    "a spec has at least `inputs:` and `output:`",
                )  # fmt: skip
        inputs = self.inputs(self.merged("inputs", "inputs"))
        let = self.let(inputs)
        names = [*inputs, *let]
        return Spec(
            name=name,
            place=self.source.place(self.node),
            file=self.file,
            description=self.text("description"),
            tags=self.tags(),
            inputs=inputs,
            let=let,
            output=self.expression(self.all["output"], "output", names),
            upstream=self.upstream(),
            expect=self.base_expect(inputs),
            derivatives=self.derivatives(inputs, names),
            gradcheck=self.gradcheck(inputs),
            xfail=self.reason("xfail"),
            skip=self.reason("skip"),
            cases=self.cases(inputs),
        )

    def value(self, key: str) -> Node | None:
        """Return the node of a key; None where it is not given."""
        return self.all[key][1] if key in self.all else None

    def merged(self, key: str, what: str) -> Entries:
        """Return the mapping of a key, over the one of the defaults."""
        layers = [layer[key][1] for layer in (self.defaults, self.own) if key in layer]
        entries: Entries = {}
        for node in layers:
            entries |= self.source.entries(node, what)
        return entries

    def text(self, key: str) -> str:
        """Return a text, empty where it is not given."""
        node = self.value(key)
        return "" if node is None or is_null(node) else self.source.text_of(node, key)

    def tags(self) -> tuple[str, ...]:
        """Return the tags."""
        node = self.value("tags")
        if node is None:
            return ()
        items = self.source.items(node)
        if items is None:
            raise self.source.error(f"tags must be a list of words, got {describe(node)}", node)
        return tuple(self.source.text_of(item, "a tag") for item in items)

    def reason(self, key: str) -> str | None:
        """Return why a spec is skipped or known to fail; None where it is not."""
        node = self.value(key)
        if node is None:
            return None
        if is_text(node):
            return str(node.value)
        value = number_of(node)
        if not isinstance(value, bool):
            hint = "write it in quotes" if value is not None else None
            raise self.source.error(f"{key} must be a reason, got {describe(node)}", node, hint)
        return "no reason given" if value else None

    # Inputs

    def inputs(self, entries: Entries) -> dict[str, Input]:
        """Return the inputs in order."""
        found: dict[str, Input] = {}
        for key, node in entries.values():
            found[self.identifier(key, found, "an input")] = self.input(key, node)
        return found

    def identifier(self, key: Node, taken: Collection[str], what: str) -> str:
        """Return a key that an expression can use as a name."""
        name = unicodedata.normalize("NFKC", key.value)
        if not name.isidentifier():
            message = f"'{name[:60]}' cannot be the name of {what}"
            raise self.source.error(message, key, "letters, digits and _ make a name")
        if keyword.iskeyword(name):
            raise self.source.error(f"'{name}' is a word of Python and cannot be a name", key)
        if name in taken:
            raise self.source.error(f"the name '{name}' is taken by an input or a let name", key)
        return name

    def input(self, key: Node, node: Node, base: Input | None = None) -> Input:
        """Return an input; a case's value keeps the dtype and the flag of the base."""
        place = self.source.place(node)
        places: Callable[[str], Place] = lambda field: place
        if kind_of(node) == "map":
            entries = self.source.entries(node, "an input")
            self.source.known(entries, keys.INPUT, "an input")
            found = self.fields(entries)
            places = lambda field: (
                self.source.place(entries[field][1]) if field in entries else place
            )
        elif is_text(node) and number_of(node) is None:
            found = parse_value(node.value, self.text_place(node), self.folder)
            called = re.match(r"\s*[a-z]+\(", node.value)  # its commas need quotes in {…}
            if node.style in ("'", '"') and found.value is not None and not called:
                raise self.source.error(
                    f"a value is expected, got {describe(node)}", node, "write it without quotes"
                )
        elif is_null(node):
            raise self.source.error("the input has no value", key)
        else:
            found = Input(value=read_nested(node, self.source))
        if base is not None:
            found.dtype = base.dtype if found.dtype is None else found.dtype
            if found.requires_grad is None:
                found.requires_grad = base.requires_grad
        found.place, found.folder = place, self.folder
        check_fields(found, places)
        if found.value is not None:
            found.value.array(found.dtype, dtypes.float64)
        return found

    def text_place(self, node: Node) -> Place:
        """Return where the text of a scalar starts, behind its quote."""
        return self.source.start.at(*self.source.locator(node)(0))

    def fields(self, entries: Entries) -> Input:
        """Return the input a mapping describes, not yet checked."""
        source = self.source
        found = Input()
        for field, (_, node) in entries.items():
            if field == "value":
                found.value = read_nested(node, source)
            elif field == "shape":
                items = source.items(node)
                found.shape = (
                    source.integer(node, "shape")
                    if items is None
                    else [source.integer(item, "a size") for item in items]
                )
            elif field in ("init", "file", "dtype"):
                setattr(found, field, source.text_of(node, field))
            elif field in ("low", "high"):
                setattr(found, field, source.real(node, field))
            elif field == "seed":
                found.seed = source.integer(node, field)
            else:
                found.requires_grad = source.flag(node, field)
        return found

    def cases(self, inputs: Mapping[str, Input]) -> dict[str, Case]:
        """Return the cases, each in its short form or with `inputs` and `expect`."""
        node = self.value("cases")
        if node is None:
            return {}
        found: dict[str, Case] = {}
        for name, (key, case) in self.source.entries(node, "cases").items():
            entries = self.source.entries(case, f"case '{self.one_line(name, key)}'")
            expect = None
            if any(word in keys.CASE and word not in inputs for word in entries):
                self.source.known(entries, keys.CASE, f"case '{name}'")
                if "expect" in entries:
                    golden = self.source.entries(entries["expect"][1], "expect")
                    expect = self.expect(golden, entries["expect"][1], inputs)
                entries = (
                    self.source.entries(entries["inputs"][1], "inputs")
                    if "inputs" in entries
                    else {}
                )
            changed = {}
            for input_key, value in entries.values():
                which = self.input_name(input_key, inputs)
                changed[which] = self.input(input_key, value, inputs[which])
            found[name] = Case(name, self.source.place(key), changed, expect)
        return found

    def input_name(self, node: Node, inputs: Collection[str]) -> str:
        """Return a word that names an input."""
        name = unicodedata.normalize("NFKC", self.source.text_of(node, "an input's name"))
        if name not in inputs:
            near = did_you_mean(name, inputs)
            hint = f"the inputs are {', '.join(inputs)}" if inputs else None
            raise self.source.error(f"there is no input '{name[:60]}'{near}", node, hint)
        return name

    # Expressions

    def expression(
        self, entry: tuple[Node, Node], what: str, names: Collection[str], hint: str | None = None
    ) -> Expression:
        """Return the expression of a key; a number is one too."""
        key, node = entry
        if is_null(node):
            raise self.source.error(f"{what} is empty", key)
        if kind_of(node) != "scalar":
            raise self.source.error(f"{what} must be an expression, got {describe(node)}", node)
        text = node.value
        if not is_text(node):
            text = without_dots(text).replace("+", " ", 1) if text[0] in "+-." else text
            text = {"true": "True", "TRUE": "True", "false": "False", "FALSE": "False"}.get(
                text, text
            )
        locate = self.source.locator(node)
        try:
            return parse(text, self.source.place(node), names, locate)
        except SpecError as error:
            if hint and error.message.startswith("unknown name"):
                error.hint = hint
            raise

    def let(self, inputs: Mapping[str, Input]) -> dict[str, Expression]:
        """Return the named intermediates, each of which may use those before it."""
        node = self.value("let")
        if node is None:
            return {}
        found: dict[str, Expression] = {}
        for key, value in self.source.entries(node, "let").values():
            name = self.identifier(key, [*inputs, *found], "a let value")
            names = [*inputs, *found]
            found[name] = self.expression(
                (key, value), f"let '{name}'", names, "let names are evaluated in order"
            )
        return found

    def derivatives(
        self, inputs: Mapping[str, Input], names: Collection[str]
    ) -> dict[str, Expression | Callable[..., Any]]:
        """Return the claimed gradients by input."""
        node = self.value("derivatives")
        if node is None:
            return {}
        found: dict[str, Expression | Callable[..., Any]] = {}
        for key, value in self.source.entries(node, "derivatives").values():
            name = self.input_name(key, inputs)
            if inputs[name].requires_grad is False:
                raise self.source.error(f"'{name}' has requires_grad: false and no derivative", key)
            found[name] = self.expression((key, value), f"the derivative of '{name}'", names)
        return found

    # Golden values and options

    def upstream(self) -> str | Golden | None:
        """Return `ones`, `randn`, or a value."""
        node = self.value("upstream")
        if node is None:
            return None
        if is_text(node) and number_of(node) is None:
            if node.value in ("ones", "randn"):
                return str(node.value)
            near = did_you_mean(node.value, ("ones", "randn"))
            raise self.source.error(
                f"unknown upstream '{node.value[:60]}'{near}", node, "it is ones, randn, or a value"
            )
        return self.golden(node)

    def golden(self, node: Node) -> Golden:
        """Return a value or an array of reals."""
        nested = read_nested(node, self.source)
        return Golden(nested.array(None, dtypes.float64), nested.place)

    def base_expect(self, inputs: Mapping[str, Input]) -> Expect | None:
        """Return the golden values of the base; tolerances alone in the defaults are none."""
        if "expect" not in self.all:
            return None
        entries = self.merged("expect", "expect")
        if "expect" not in self.own and not {"value", "grad"} & set(entries):
            return None
        return self.expect(entries, self.all["expect"][1], inputs)

    def expect(self, entries: Entries, node: Node, inputs: Mapping[str, Input]) -> Expect:
        """Return golden values."""
        self.source.known(entries, keys.EXPECT, "expect")
        if not {"value", "grad"} & set(entries):
            raise self.source.error("expect needs 'value' or 'grad'", node)
        gradients: dict[str, Golden | None] = {}
        if "grad" in entries:
            for key, value in self.source.entries(entries["grad"][1], "expect.grad").values():
                name = self.input_name(key, inputs)
                gradients[name] = None if is_null(value) else self.golden(value)
        return Expect(
            place=self.source.place(node),
            value=self.golden(entries["value"][1]) if "value" in entries else None,
            grad=gradients,
            atol=self.tolerance(entries, "atol", EXPECT_ATOL),
            rtol=self.tolerance(entries, "rtol", EXPECT_RTOL),
        )

    def tolerance(self, entries: Entries, key: str, default: float) -> float:
        """Return a tolerance, which is finite and never negative."""
        if key not in entries:
            return default
        value = self.source.real(entries[key][1], key)
        if not 0 <= value < float("inf"):
            message = f"{key} must be a finite number that is not negative"
            raise self.source.error(message, entries[key][1])
        return value

    def gradcheck(self, inputs: Mapping[str, Input]) -> dict[str, Any]:
        """Return the options of the check that are given."""
        entries = self.merged("gradcheck", "gradcheck")
        source = self.source
        source.known(entries, keys.GRADCHECK, "gradcheck")
        found: dict[str, Any] = {}
        for key, (_, node) in entries.items():
            if key in ("atol", "rtol"):
                found[key] = self.tolerance(entries, key, 0.0)
            elif key == "eps":
                found[key] = source.real(node, key)
                if not 0 < found[key] < float("inf"):
                    raise source.error("eps must be positive and finite", node)
            elif key in ("seed", "samples"):
                found[key] = source.integer(node, key)
                if found[key] < 0:
                    raise source.error(f"{key} must not be negative", node)
            elif key == "mode":
                found[key] = source.text_of(node, key)
                if found[key] not in MODES:
                    near = did_you_mean(found[key], MODES)
                    hint = f"mode is one of {', '.join(MODES)}"
                    raise source.error(f"unknown mode '{found[key][:60]}'{near}", node, hint)
            elif key == "numeric":
                found[key] = source.flag(node, key)
            else:
                found[key] = self.input_names(node, inputs)
        return found

    def input_names(self, node: Node, inputs: Collection[str]) -> tuple[str, ...]:
        """Return a list of names of inputs."""
        items = self.source.items(node)
        if items is None:
            raise self.source.error(f"inputs must be a list of names, got {describe(node)}", node)
        return tuple(self.input_name(item, inputs) for item in items)
