"""`kael faults` prints the manual page of every code that a report can name."""

import json

import pytest

from kael.checker import faults


def test_every_code_is_listed_with_its_first_sentence(kael):
    ran = kael("faults")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == faults.codes()
    assert lines[faults.codes().index("sign-flipped")].endswith("  The sign is wrong.")


@pytest.mark.parametrize("code", faults.codes())
def test_every_page_tells_what_was_seen_why_and_how_to_mend_it(kael, code):
    page = kael("faults", code).out
    assert page.startswith(f"# {code}\n\n")
    for heading in ("## What was seen", "## Why it happens", "## How to mend it"):
        assert heading in page


def test_an_unknown_code_suggests(kael):
    ran = kael("faults", "sing-flipped")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'sign-flipped'?" in ran.err


def test_pages_as_json(kael):
    (row,) = json.loads(kael("faults", "factor", "--format", "json").out)["results"]
    assert row["code"] == "factor"
    assert row["summary"] == "The gradient is a constant times the right one."
    assert row["page"] == faults.page("factor")


def test_the_code_in_a_report_has_a_page(kael, tmp_path):
    path = tmp_path / "half.yaml"
    path.write_text("inputs: {x: [1, 2]}\noutput: (x**2).sum()\nderivatives: {x: x}\n")
    out = kael("gradcheck", str(path)).out
    code = out.splitlines()[0].rpartition("[")[2].rstrip("]")
    assert code == "factor"
    assert kael("faults", code).code == 0
