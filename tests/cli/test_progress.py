"""The progress bar: on a terminal, for a long run, and gone at the end."""

import os
import pty
import subprocess
import sys

import pytest

from kael_cli import progress
from kael_cli.progress import Progress

SPEC = """\
specs:
  - {name: right, inputs: {x: [1.0, 2.0]}, output: tanh(x).sum()}
  - {name: wrong, inputs: {x: [1.0, 2.0]}, output: tanh(x).sum(), derivatives: {x: tanh(x)}}
  - {name: also right, inputs: {x: [1.0, 2.0]}, output: exp(x).sum()}
"""


def on_a_terminal(arguments, folder):
    """Run kael with a terminal as its standard error; return both streams."""
    ours, theirs = pty.openpty()
    code = "import kael_cli.progress as p, kael_cli.main as m; p.SHOWN_AFTER = 0; m.run()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        check=False,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return done.returncode, done.stdout.decode(), shown.decode()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "three.yaml").write_text(SPEC)
    return tmp_path


def test_a_bar_is_shown_and_leaves_the_results_alone(folder):
    code, out, shown = on_a_terminal(["check", "three.yaml"], folder)
    assert code == 1
    assert "1/3" in shown
    assert "3/3" in shown
    assert "wrong" in out
    assert out.rstrip().endswith("s")
    assert "\x1b" not in out


@pytest.mark.parametrize("arguments", [["check", "-q", "three.yaml"], ["gradcheck", "three.yaml"]])
def test_no_bar_where_none_is_wanted(folder, arguments):
    _, _, shown = on_a_terminal(arguments, folder)
    assert shown == ""


def test_a_short_run_loads_no_bar(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "_bar", lambda total: pytest.fail("a bar for a short run"))
    with Progress(wanted=True) as bar:
        bar.advance()


def test_a_page_is_rendered_on_a_terminal_only(kael):
    plain, coloured = kael("faults", "factor"), kael("faults", "factor", "--color", "always")
    assert plain.out.startswith("# factor\n")
    assert "\x1b[" in coloured.out
    assert "# factor" not in coloured.out
