"""From the TARGETs of a command line to the instances they stand for.

`resolve` never stops at the first thing that is wrong: it returns what could be loaded and an error
for each thing that could not.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kael.specs.expression import MAX_ELEMENTS, parse
from kael.specs.inputs import Input
from kael.specs.language import CONSTANTS
from kael.specs.model import Instance, Spec, names_of
from kael.specs.place import Place, SpecError
from kael.specs.spelling import did_you_mean, suggest
from kael.specs.values import parse_value

if TYPE_CHECKING:
    from kael.specs.yaml_loader import Loaded

YAML = (".yaml", ".yml")
SUFFIXES = (*YAML, ".py")
# Patterns are compiled when first used.
SPLIT = r"(?is)(.*?\.(?:yaml|yml|py))::(.*)"
PATH_LIKE = r"[\w.\-/\\~:]+"


@dataclass
class Selection:
    """What the targets stand for.

    `files` are the paths that were read; `notes` are for stderr.
    """

    instances: list[Instance] = field(default_factory=list)
    errors: list[SpecError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@dataclass
class Override:
    """One `-i` or `-c`: a name, its value (None where none is given), and where it stands."""

    name: str
    given: Input
    place: Place


def resolve(
    targets: Sequence[str],
    inputs: Sequence[str] = (),
    consts: Sequence[str] = (),
    *,
    seed: int = 0,
    paths_only: bool = False,
    all_cases: bool = False,
    draw_missing: bool = False,
    max_elements: int = MAX_ELEMENTS,
    stdin: Callable[[], bytes] | None = None,
) -> Selection:
    """Return the instances that some targets stand for, with the errors met on the way.

    `inputs` and `consts` are the texts of `-i` and `-c`. `paths_only` refuses inline expressions,
    `all_cases` adds the cases to each base, `draw_missing` draws a scalar for a name of an inline
    expression that has no value. `seed` is that of the global generator under Python files.
    """
    found = Selection()
    overrides = parse_overrides(inputs, consts, found.errors, max_elements)
    loader = Loader(seed, stdin, found)
    seen: set[tuple[str, str, str | None]] = set()
    for target in targets:
        try:
            if is_inline(target) and not paths_only:
                given = overrides if len(targets) == 1 else used(target, overrides)
                chosen = [inline(target, given, draw_missing, found.notes)]
            else:
                chosen = loader.instances(target, all_cases, paths_only)
        except SpecError as error:
            found.errors.append(error)
            continue
        for instance in chosen:
            where = instance.spec.file or instance.spec.place.label
            key = (os.path.realpath(where) if instance.spec.file else f"{where}{target}",
                   instance.spec.name, instance.case)  # fmt: skip
            if key not in seen:
                seen.add(key)
                found.instances.append(instance)
    if overrides and (found.instances or not found.errors):
        apply(overrides, found)
    for instance in found.instances:
        instance.spec.max_elements = max_elements
    return found


def is_inline(target: str) -> bool:
    """Tell whether a target is an expression and no path."""
    return not (
        target == "-"
        or target.lower().endswith(SUFFIXES)
        or re.fullmatch(SPLIT, target)
        or os.path.isdir(target)
        or os.path.isfile(target)
    )


# Inline expressions


def inline(
    text: str, overrides: dict[str, Override], draw_missing: bool, notes: list[str]
) -> Instance:
    """Return the spec of an inline expression, whose inputs are given by `-i` and `-c`.

    Raises `SpecError` for a name without a value, unless it may be drawn.
    """
    place = Place(None, 1, 1, "<expression>", text)
    try:
        expression = parse(text, place)
    except SpecError as error:
        if not overrides.keys().isdisjoint(re.findall(r"\w+", text)):
            raise  # `x.grad`, or `1/x.grad`, with -i x=1 is no path
        raise missing_path(text, error) from None
    missing = [name for name in expression.names if name not in overrides]
    if missing and not draw_missing:
        parse_known(text, place, overrides, missing)
    inputs = {name: overrides[name].given for name in expression.names if name in overrides}
    # An input that is given and not used is one all the same: its gradient is none.
    inputs |= {name: override.given for name, override in overrides.items() if name not in inputs}
    for name in missing:
        inputs[name] = drawn = Input(shape=(), init="normal")
        drawn.place = place
    if missing:
        listed = ", ".join(missing)
        path = f"; there is no file or folder '{text}'" if could_be_path(text) else ""
        notes.append(
            f"{listed} drawn from a standard normal{path}; "
            f"-i {missing[0]}=VALUE sets {'it' if len(missing) == 1 else 'one'}"
        )
    order = [*overrides, *missing]
    spec = Spec(
        name=" ".join(text.split()),
        place=place,
        output=parse(text, place, names=list(inputs)),
        inputs={name: inputs[name] for name in order},
    )
    return Instance(spec, None)


def used(text: str, overrides: dict[str, Override]) -> dict[str, Override]:
    """Return the overrides that an expression among other targets names."""
    try:
        names = parse(text).names
    except SpecError:
        return overrides
    return {name: override for name, override in overrides.items() if name in names}


def parse_known(
    text: str, place: Place, overrides: dict[str, Override], missing: list[str]
) -> None:
    """Raise the error for a name of an expression that has no value."""
    name = missing[0]
    if could_be_path(text):
        raise missing_path(text, None)
    try:
        parse(text, place, names=[*overrides])
    except SpecError as error:
        if error.message.startswith("unknown name"):
            near = did_you_mean(name, [*overrides, *CONSTANTS])
            error = SpecError(
                f"'{name}' has no value{near}", error.place, hint=f"give it one: -i {name}=VALUE"
            )
        raise error from None


def could_be_path(text: str) -> bool:
    """Tell whether a target that is no file looks like one."""
    return re.fullmatch(PATH_LIKE, text) is not None


def missing_path(text: str, error: SpecError | None) -> SpecError:
    """Return the error for a text that is no expression kael can evaluate, and maybe a path."""
    if in_folder(text):
        return no_such(text)
    if not could_be_path(text) or (error is not None and "/" not in text and "." not in text):
        return error or no_such(text)
    found = no_such(text)
    if error is None:
        name = re.split(r"\W", text)[0] or "NAME"
        found.hint = (found.hint + "\n" if found.hint else "") + (
            f"as an expression, its names need values: -i {name}=VALUE"
        )
    return found


def no_such(path: str) -> SpecError:
    """Return the error for a path that leads nowhere, with the nearest that exists."""
    shown = path.replace(os.sep, "/")
    place = Place(shown, label=shown)
    if in_folder(path):
        folder, _, name = shown.partition("::")
        message = f"`::` names a spec of a file, and '{folder}' is a folder"
        return SpecError(message, place, hint=f"-k {name} selects by name" if name else None)
    if os.path.exists(path):
        return SpecError("it is no file and no folder", place, hint="`-` reads standard input")
    folder, name = os.path.split(path.rstrip("/" + os.sep))
    near = nearest(name, folder)
    hint = f"did you mean '{os.path.join(folder, near).replace(os.sep, '/')}'?" if near else None
    return SpecError("there is no such file or folder", place, hint=hint)


def in_folder(text: str) -> bool:
    """Tell whether a target asks a folder, rather than a file, for one of its specs."""
    folder, separator, _ = text.partition("::")
    return bool(separator) and os.path.isdir(folder)


def nearest(name: str, folder: str) -> str | None:
    """Return the entry of a folder that was probably meant: the same name but for the ending first.

    Endings are not compared: with them, any two short names are alike.
    """
    try:
        entries = sorted(os.listdir(folder or "."))
    except OSError:
        return None
    stems = {
        os.path.splitext(entry)[0]: entry
        for entry in reversed(entries)
        if not entry.startswith(".")
        and (entry.lower().endswith(SUFFIXES) or os.path.isdir(os.path.join(folder, entry)))
    }
    stem = os.path.splitext(name)[0]
    found = stem if stem in stems else suggest(stem, stems)
    return None if found is None else stems[found]


# Overrides


def parse_overrides(
    inputs: Sequence[str], consts: Sequence[str], errors: list[SpecError], max_elements: int
) -> dict[str, Override]:
    """Return what `-i` and `-c` give, by name."""
    found: dict[str, Override] = {}
    for option, texts in (("-i", inputs), ("-c", consts)):
        for text in texts:
            try:
                override = parse_override(option, text, max_elements)
                if override.name in found:
                    message = f"'{override.name}' is given twice"
                    raise SpecError(message, override.place.at(None, None))
            except SpecError as error:
                errors.append(error)
            else:
                found[override.name] = override
    return found


def parse_override(option: str, text: str, max_elements: int) -> Override:
    """Return one `NAME=VALUE`."""
    import keyword
    import unicodedata

    name, equals, value = text.partition("=")
    name = unicodedata.normalize("NFKC", name.strip())
    place = Place(None, 1, 1, f"{option} {name[:60]}", value)
    if not equals:
        raise SpecError("a value is missing", place.at(None, None), hint=f"{option} NAME=VALUE")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise SpecError(f"'{name[:60]}' is no name for an input", place.at(None, None))
    given = parse_value(value, place, max_elements=max_elements)
    if option == "-c":
        given.requires_grad = False
    return Override(name, given, place)


def apply(overrides: dict[str, Override], found: Selection) -> None:
    """Put the values of `-i` and `-c` in the place of the inputs of that name.

    A name that no selected spec has is an error.
    """
    known = list(names_of(found.instances))
    for name, override in overrides.items():
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"the inputs are {', '.join(known)}" if known else None
            message = f"no selected spec has an input '{name}'{near}"
            found.errors.append(SpecError(message, override.place.at(None, None), hint=hint))
            continue
        for instance in found.instances:
            if name in instance.inputs:
                instance.inputs[name] = replaced(instance.inputs[name], override.given)


def replaced(base: Input, given: Input) -> Input:
    """Return an override that keeps the dtype of an integer or boolean input."""
    if given is base or given.dtype is not None or given.file is not None:
        return given
    dtype = base.dtype
    if dtype is None and hasattr(base.value, "dtype"):
        dtype = base.value.dtype
    return given if dtype is None else given.with_changes(dtype=dtype)


# Files and folders


class Loader:
    """Reads each file once and picks from it what a target names."""

    def __init__(self, seed: int, stdin: Callable[[], bytes] | None, found: Selection) -> None:
        self.seed = seed
        self.stdin = stdin or (lambda: sys.stdin.buffer.read())
        self.found = found
        self.loaded: dict[str, Loaded] = {}

    def instances(self, target: str, all_cases: bool, paths_only: bool) -> list[Instance]:
        """Return the instances of a path, of a spec in it, of a folder, or of `-`."""
        if target == "-":
            specs = self.keep(self.read_stdin())
            return pick(specs, all_cases)
        match = re.fullmatch(SPLIT, target)
        if match:
            return self.named(match[1], match[2], all_cases)
        if os.path.isdir(target):
            return pick(self.folder(target), all_cases)
        if not os.path.isfile(target):
            error = no_such(target)
            if paths_only and not could_be_path(target):
                error.hint = "`check` takes paths and `-`; `gradcheck` takes expressions too"
            raise error
        if not target.lower().endswith(SUFFIXES):
            raise SpecError(
                "a file of specs ends in .yaml, .yml or .py", Place(target.replace(os.sep, "/"))
            )
        specs = self.keep(self.read(target))
        if not specs and not self.loaded[os.path.realpath(target)].errors:
            raise SpecError("no spec found in the file", Place(target.replace(os.sep, "/")))
        return pick(specs, all_cases)

    def read_stdin(self) -> "Loaded":
        """Return the specs on standard input."""
        from kael.specs.yaml_loader import load_bytes

        if "-" not in self.loaded:
            self.loaded["-"] = load_bytes(self.stdin(), "stdin", None, "<stdin>")
        return self.loaded["-"]

    def read(self, path: str, shown: str | None = None) -> "Loaded":
        """Return the specs of a file, read when first asked for."""
        key = os.path.realpath(path)
        if key not in self.loaded:
            self.found.files.append(path)
            if path.lower().endswith(YAML):
                from kael.specs import yaml_loader

                self.loaded[key] = yaml_loader.load(path, shown)
            else:
                from kael.specs import python_loader

                self.loaded[key] = python_loader.load(path, shown, self.seed)
        return self.loaded[key]

    def keep(self, loaded: "Loaded") -> list[Spec]:
        """Note the errors of a file, once, and return its specs."""
        new = [error for error in loaded.errors if not any(error is e for e in self.found.errors)]
        self.found.errors += new
        return loaded.specs

    def folder(self, folder: str) -> list[Spec]:
        """Return the specs of every file under a folder, in the order of the paths."""
        specs: list[Spec] = []
        empty = True
        unreadable: list[OSError] = []
        for path in spec_files(folder, unreadable.append):
            loaded = self.read(path, path.replace(os.sep, "/"))
            if path.lower().endswith(".py") and not loaded.specs and not loaded.errors:
                self.found.notes.append(f"{path.replace(os.sep, '/')} defines no spec")
                continue
            empty = False
            specs += self.keep(loaded)
        for error in unreadable:
            # What is in it is not known, so it is not passed over in silence.
            message = f"the folder cannot be read: {error.strerror or error}"
            place = Place(str(error.filename).replace(os.sep, "/"))
            self.found.errors.append(SpecError(message, place))
        if empty and not unreadable:
            shown = folder.replace(os.sep, "/")
            hint = "specs are in *.yaml, *.yml, and *.py files that use kael.spec"
            raise SpecError("no spec found in the folder", Place(shown), hint=hint)
        return specs

    def named(self, path: str, pattern: str, all_cases: bool) -> list[Instance]:
        """Return the instances that `path::name` or `path::name[case]` stands for."""
        shown = path.replace(os.sep, "/")
        if not os.path.isfile(path):
            raise no_such(path)
        loaded = self.read(path)
        whole = glob(pattern)
        chosen = pick([spec for spec in loaded.specs if whole(spec.name)], all_cases)
        splits = case_splits(pattern)
        if splits:
            chosen = next(filter(None, (pick_cases(loaded.specs, *one) for one in splits)), [])
        for spec_part, case_part in splits if not chosen else ():
            specs = [spec for spec in loaded.specs if glob(spec_part)(spec.name)]
            if specs:
                cases = list(dict.fromkeys(case for spec in specs for case in spec.cases))
                near = did_you_mean(case_part, cases)
                hint = f"the cases are {', '.join(cases)}" if cases else "it has no cases"
                title = specs[0].name if len(specs) == 1 else spec_part
                message = f"'{title}' has no case '{case_part}'{near}"
                raise SpecError(message, Place(shown), hint=hint)
        # The spec that is asked for may be one that cannot be read.
        asked = [whole, *(glob(spec_part) for spec_part, _ in splits)]
        broken = [
            error
            for error in loaded.errors
            if (not chosen if error.spec is None else any(test(error.spec) for test in asked))
        ]
        self.keep(loaded._replace(errors=broken))
        if not chosen and not broken:
            names = [spec.name for spec in loaded.specs]
            names += [error.spec for error in loaded.errors if error.spec is not None]
            wanted = splits[0][0] if splits else pattern
            near = did_you_mean(wanted, names)
            listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
            hint = f"the specs are {listed}" if names else "the file has no spec"
            raise SpecError(f"no spec is named '{wanted}'{near}", Place(shown), hint=hint)
        return chosen


def pick(specs: Iterable[Spec], all_cases: bool) -> list[Instance]:
    """Return the base of each spec, with its cases where they are asked for."""
    return [
        instance
        for spec in specs
        for instance in (spec.instances() if all_cases else [Instance(spec, None)])
    ]


def case_splits(pattern: str) -> list[tuple[str, str]]:
    """Return the ways to read `spec[case]`: brackets may be part of a case's name.

    >>> case_splits("gate[a[0]]")
    [('gate[a', '0]'), ('gate', 'a[0]')]
    """
    if not pattern.endswith("]"):
        return []
    starts = [at for at, char in enumerate(pattern) if char == "["]
    return [(pattern[:at], pattern[at + 1 : -1]) for at in reversed(starts)]


def pick_cases(specs: Iterable[Spec], spec_part: str, case_part: str) -> list[Instance]:
    """Return the cases whose spec and own name match."""
    spec_name, case_name = glob(spec_part), glob(case_part)
    return [
        Instance(spec, case)
        for spec in specs
        if spec_name(spec.name)
        for case in spec.cases
        if case_name(case)
    ]


def glob(pattern: str) -> Callable[[str], bool]:
    """Return the test whether a name matches a pattern, in which only `*` and `?` are special."""
    text = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    compiled = re.compile(text, re.DOTALL)
    return lambda name: compiled.fullmatch(name) is not None


def spec_files(folder: str, unreadable: Callable[[OSError], None]) -> Iterator[str]:
    """Yield the files under a folder that may hold specs; hidden ones and caches are skipped.

    `unreadable` is called with the error of each folder that cannot be looked into.
    """
    for root, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name != "__pycache__"
        )
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.startswith(".") or (os.path.exists(path) and not os.path.isfile(path)):
                continue  # reading a named pipe would wait for its writer
            if name.lower().endswith(YAML):
                yield path
            elif name.lower().endswith(".py"):
                from kael.specs.python_loader import mentions_specs

                if mentions_specs(path):
                    yield path
