"""Positive controls: each detector of the campaigns sees what it is for, and nothing else."""

import signal

import pytest
from support import detectors
from support.detectors import TOKEN, findings, leaks
from support.isolated import MEMORY, Case


@pytest.fixture
def found(forks, scratch):
    """Kinds of what is found after a call of ``support.jobs:control``."""

    def control(*words, seconds=10.0, **case):
        before = scratch.state()
        outcome = forks.run(Case(words, "support.jobs:control", **case), scratch, seconds)
        return [finding.kind for finding in findings(outcome, scratch, before)]

    return control


def test_a_verb_that_does_well_has_no_finding(forks, scratch):
    before = scratch.state()
    outcome = forks.run(Case(("list", "methods")), scratch)
    assert findings(outcome, scratch, before) == []
    assert b"bct" in outcome.out and outcome.code == 0
    assert outcome.seconds < 5 and 10 * 2**20 < outcome.memory_bytes < MEMORY
    refused = forks.run(Case(("info", "mixbtc")), scratch)
    assert refused.code == 2 and "did you mean 'mixbct'" in refused.errors
    assert findings(refused, scratch, before) == []


def test_traceback_and_exit_codes(found):
    assert found("raise", "oops") == ["traceback", "crash"]
    assert found("exit", 1) == ["crash"] and found("exit", 0) == []
    assert found("exit", 2) == ["crash"], "a refusal says why"
    assert found("signal", signal.SIGSEGV) == ["crash"]


@pytest.mark.slow
def test_time(found, monkeypatch):
    monkeypatch.setattr(detectors, "SECONDS", 0.3)
    assert found("sleep", 0.5) == ["slow"]
    assert found("sleep", 30, seconds=0.3) == ["slow"]
    assert found("sleep", 0.0) == []


@pytest.mark.slow
def test_memory(found, forks, scratch):
    assert found("fill", MEMORY + 2**20) == ["large"]
    assert found("fill", MEMORY // 4) == []
    # What would fill the machine is refused by the system.
    case = Case(("fill", MEMORY), "support.jobs:control")
    endless = forks.start(case, scratch, spare=MEMORY // 2).wait(10)
    assert "MemoryError" in endless.errors


@pytest.mark.parametrize("text", ["\x1b[2J", "\x07", "a\rb", "\u202etxt", "\x9b2J", "\ud800"])
def test_terminal(found, text):
    assert found("print", text) == ["escaped"]


def test_terminal_takes_text(found):
    assert found("print", "Grüße, \U0001f600 ─ µ\t1\n") == []


def test_what_runs(found, scratch):
    assert found("import", "planted") == ["ran"]
    assert found("system", "true") == ["ran"]
    assert found("import", "json") == []


def test_writing_outside(found, scratch, tmp_path_factory):
    def kinds(*words):
        return set(found(*words))

    assert kinds("write", str(scratch.out / "x"), "") == set()
    assert kinds("write", str(scratch.cwd / "x"), "") == {"outside"}
    assert kinds("write", str(tmp_path_factory.mktemp("else") / "x"), "") == {"outside"}
    assert kinds("write", str(scratch.outside / "keep.txt"), "changed") == {"outside"}
    assert kinds("remove", str(scratch.outside / "keep.txt")) == {"outside"}
    assert kinds("link", str(scratch.outside), str(scratch.out / "link")) == {"outside"}


def test_what_a_link_leads_to_is_outside_and_the_link_is_not(found, scratch):
    def link(target):
        (scratch.out / "link").symlink_to(target)
        return scratch.out / "link"

    assert found("remove", str(link("/dev/zero"))) == []
    assert found("remove", str(link(scratch.outside / "keep.txt"))) == []
    assert set(found("remove", str(link(scratch.outside) / "keep.txt"))) == {"outside"}


@pytest.mark.parametrize(
    "markup",
    [
        f"<script>{TOKEN}()</script>", f"<img src=x onerror={TOKEN}()>", f"<{TOKEN}>",
        f'<a href="javascript:{TOKEN}()">x</a>', f'<a href=" \tJavaScript:{TOKEN}()">x</a>',
        f'<p title="" onmouseover="{TOKEN}()" x="">', f"<p {TOKEN}=1>",
        f"<style>{TOKEN}</style>", f'<p style="background:url({TOKEN})">',
        f'<iframe srcdoc="{TOKEN}">', f"<svg/onload={TOKEN}()>", f"<img src=x{TOKEN}>",
        f'<script type="application/json">"</script><img src=x{TOKEN}>"</script>',
        f'<svg><a xlink:href="javascript:{TOKEN}()"/></svg>',
    ],
)  # fmt: skip
def test_a_leaking_page(found, scratch, markup):
    page = f"<!doctype html><title>t</title><body>{markup}"
    assert set(found("write", str(scratch.out / "page.html"), page)) == {"leaked"}


def test_a_page_with_text_alone(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        f"<!doctype html><title>{TOKEN}</title><p title='{TOKEN}' id='x'>&lt;script&gt;{TOKEN}()"
        f"<script type='application/json'>{{'a': '\\u003cscript>{TOKEN}'}}</script>"
        f"<a href='records/{TOKEN}.html'>x</a><!-- {TOKEN} --><p data-name='{TOKEN}'>"
    )
    assert list(leaks(page)) == []
