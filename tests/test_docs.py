"""The pages keep their word: their files are written, their commands run, their output compared.

A page is one story, run from top to bottom in an empty folder. A ```yaml or ```python block whose
paragraph in front names a file (`specs/energy.yaml`) is that file; other ```python blocks run, as
doctests where they have prompts. In a ```console block each line `$ command` runs and the lines up
to the next one are all it prints; `$ echo $?` is the exit code of the command before. Seconds are
masked, and so are numbers below 1e-6: rounding is another on another machine. Where a command asks
for JSON, documents are compared, so that a page may wrap them.

`python tests/test_docs.py` writes what the commands print today into the pages.
"""

import contextlib
import doctest
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from kael_cli.main import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
STORIES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
PAGES = [*STORIES, ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*/*.md"))]
GENERATED = {"operations.md", "performance.md"}
STORIES = [page for page in STORIES if page.name not in GENERATED]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./-]+\.(?:yaml|yml|py|toml))`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROUNDING = re.compile(
    r" *\b\d(\.\d+)?e-(0[7-9]|[1-9]\d)\b| *(?<=relative )(\d(\.\d+)?e-0[4-6]|0\.000\d+)"
)
SECONDS = re.compile(r'(?<=in )\d+\.\d\ds|(?<="seconds": )[\d.e-]+|(?<= time=")[\d.]+')


class Block(NamedTuple):
    """One fenced block: where its text starts, its language, and the paragraph in front of it."""

    start: int
    language: str
    text: str
    before: str

    @property
    def file(self) -> str | None:
        """The file that the block is, if the paragraph in front names one of its kind."""
        suffixes = {"yaml": (".yaml", ".yml"), "python": (".py",), "toml": (".toml",)}
        kinds = suffixes.get(self.language, ())
        named = [name for name in FILE.findall(self.before) if name.endswith(kinds)]
        return named[-1] if named else None


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page, in order."""
    end = 0
    for match in FENCE.finditer(text):
        between = text[end : match.start()].strip("\n")
        yield Block(match.start(2), match[1], match[2], between.rpartition("\n\n")[2])
        end = match.end()


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that the page shows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


class Shell:
    """Runs the commands of one page: kael in this process, all else in a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0

    def run(self, command: str) -> str:
        """Return all that a command prints, on stdout and stderr."""
        if command == "echo $?":
            return f"{self.code}\n"
        words = shlex.split(command)
        if words[0] != "kael" or set(words) & {"|", ">", "<"}:
            return self.in_a_shell(command)
        stream = io.StringIO()
        with (
            contextlib.redirect_stdout(stream),
            contextlib.redirect_stderr(stream),
            contextlib.chdir(self.folder),
            np.errstate(),
        ):
            self.code = main(words[1:])
        return stream.getvalue()

    def in_a_shell(self, command: str) -> str:
        """Run a command in a shell that finds this Python and its kael first."""
        scripts = os.path.dirname(sys.executable)
        path = os.pathsep.join([scripts, os.environ.get("PATH", "")])
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout


def alike(command: str, shown: str, printed: str) -> bool:
    """Tell whether the page shows what a command printed."""
    if "--format json" in command:
        with contextlib.suppress(ValueError):
            return same(json.loads(shown), json.loads(printed))
    return masked(shown) == masked(printed)


def masked(text: str) -> str:
    """Return a text without seconds and rounding errors."""
    return ROUNDING.sub(" …", SECONDS.sub("…", text))


def same(shown: Any, printed: Any, key: str = "") -> bool:
    """Tell whether two documents of JSON differ in nothing but seconds and rounding."""
    if key == "seconds":
        return True
    if isinstance(shown, dict) and isinstance(printed, dict):
        return list(shown) == list(printed) and all(same(shown[k], printed[k], k) for k in shown)
    if isinstance(shown, list) and isinstance(printed, list):
        return len(shown) == len(printed) and all(map(same, shown, printed))
    if isinstance(shown, float) and isinstance(printed, float):
        return math.isclose(shown, printed, rel_tol=1e-6, abs_tol=1e-6)
    return type(shown) is type(printed) and shown == printed


def wrapped(document: Any, indent: str = "") -> str:
    """Return JSON in lines of at most 100 characters, as a page shows it."""
    flat = json.dumps(document, ensure_ascii=False)
    if len(indent) + len(flat) <= 96 or not isinstance(document, (dict, list)):
        return flat
    deeper = indent + "  "
    if isinstance(document, dict):
        parts = [f"{json.dumps(k)}: {wrapped(v, deeper)}" for k, v in document.items()]
    else:
        parts = [wrapped(v, deeper) for v in document]
    lines = [parts[0]]
    for part in parts[1:]:
        fits = len(deeper) + len(lines[-1]) + len(part) <= 96
        if fits and "\n" not in part + lines[-1]:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    opening, closing = "{}" if isinstance(document, dict) else "[]"
    return opening + "\n" + ",\n".join(deeper + line for line in lines) + f"\n{indent}{closing}"


def run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Run a block of Python and return what does not hold."""
    if ">>> " not in block.text:
        exec(compile(block.text, page.name, "exec"), names)
        return ""
    said = io.StringIO()
    line = page.read_text(encoding="utf-8").count("\n", 0, block.start)
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), line)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.write, clear_globs=False)
    names.update(test.globs)
    return said.getvalue()


def tell(page: Path, folder: Path, renew: bool = False) -> list[str]:
    """Run a page in a folder; return what differs, or write what was printed into the page."""
    text = page.read_text(encoding="utf-8")
    shell, names = Shell(folder), {"__name__": page.stem}
    wrong: list[str] = []
    renewed, done = "", 0
    for block in blocks(text):
        if block.file is not None:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            with contextlib.chdir(folder):
                said = run_python(block, page, names)
            wrong += [said] if said else []
        elif block.language == "console" and block.text.startswith("$ "):
            lines = ""
            for command, shown in commands(block.text):
                printed = shell.run(command)
                if not alike(command, shown, printed):
                    wrong.append(f"$ {command}\n{printed}instead of\n{shown}")
                    shown = printed
                    if "--format json" in command and printed.startswith("{"):
                        shown = wrapped(json.loads(printed)) + "\n"
                lines += f"$ {command}\n{shown}"
            renewed += text[done : block.start] + lines
            done = block.start + len(block.text)
    if renew and wrong:
        page.write_text(renewed + text[done:], encoding="utf-8")
    return wrong


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_happens(page, tmp_path, monkeypatch):
    for name in ("KAEL_TRACE_BACKWARD", "KAEL_DETECT_ANOMALY"):
        monkeypatch.delenv(name, raising=False)
    wrong = tell(page, tmp_path)
    assert not wrong, "\n\n".join(wrong)


def test_a_page_that_lies_is_found(tmp_path):
    page = tmp_path / "page.md"
    story = (
        "A spec, `one.yaml`:\n\n```yaml\ninputs: {x: 2}\noutput: x**2\n```\n\n"
        "```console\n$ kael backward one.yaml\nvalue   shape=[]  4\ngrad x  shape=[]  {grad}\n"
        "$ echo $?\n0\n```\n\n```python\n>>> 1 + 1\n{sum}\n```\n"
    )
    page.write_text(story.replace("{grad}", "4").replace("{sum}", "2"), encoding="utf-8")
    assert tell(page, tmp_path) == []
    page.write_text(story.replace("{grad}", "5").replace("{sum}", "3"), encoding="utf-8")
    wrong = tell(page, tmp_path, renew=True)
    assert len(wrong) == 2
    assert "grad x  shape=[]  4\n" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.stem)
def test_every_yaml_block_is_a_file_that_a_command_reads(page):
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "yaml":
            assert block.file, f"{page.name}: a block of YAML without a file:\n{block.text}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.findall(prose):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in sorted(DOCS.glob("*.md")):
        assert f"docs/{page.name}" in readme, page.name


def test_the_two_first_commands_are_what_ci_runs():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    use, test = [block.text for block in blocks(readme) if block.language == "console"][:2]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for shown in (use, test):
        assert shown.count("\n") == 1
        assert "python3 -m venv" in shown
    assert "kael check specs/" in use
    assert 'kael" check specs/' in ci
    assert 'install -e ".[test]"' in test
    assert '-e ".[test]"' in ci
    assert "-m pytest -q" in test
    assert "-m pytest -q" in ci
    assert "pip install ." in use
    assert "*.whl" in ci


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_explained(command, capsys):
    main([command, "--help"])
    options = re.findall(r"^  (?:-\w, )?(--?[a-z][a-z-]*)", capsys.readouterr().out, re.MULTILINE)
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert options
    for option in options:
        assert f"`{option}" in page, option


def test_every_command_and_key_has_its_place():
    from kael.specs import keys

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = (DOCS / "specs.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`kael {command}" in readme, command
    for table in (keys.SPEC, keys.INPUT, keys.EXPECT, keys.GRADCHECK, keys.FILE):
        for key in table:
            assert f"`{key}`" in page or f"`{key}:`" in page, key


if __name__ == "__main__":
    for chosen in [Path(name).resolve() for name in sys.argv[1:]] or STORIES:
        with tempfile.TemporaryDirectory() as empty:
            for line in tell(chosen, Path(empty), renew=True):
                print(chosen.name, line, sep=": ")
