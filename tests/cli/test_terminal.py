"""Output of the command to a terminal, and its end when files cannot be read or written."""

import contextlib
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from markupsafe import Markup
from support.made_stages import titled
from support.mounts import small_disk
from support.upgrades import planted, write_upgrade

from benchmark.cli import app
from benchmark.cli.output import echo, echo_entry, echo_json, plain_errors
from benchmark.cli.running import Progress
from benchmark.config.files import write_whole
from benchmark.report.renderers import html, terminal
from benchmark.report.text_table import TextCell, simple_table
from leaderboard.pages import templates

ROOT = Path(__file__).parents[2]
BENCH = [sys.executable, "-m", "benchmark.cli.app"]


def bench(*words, **options):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*BENCH, *words], env=environment, stderr=subprocess.PIPE, text=True, timeout=60,
        check=False, **options,
    )  # fmt: skip


def one_line(text, *words):
    assert text.startswith("bench: ") and text.count("\n") == 1 and "Traceback" not in text
    for word in words:
        assert word in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["list", "methods"], ["schema"], ["--help"]])
def test_a_full_disk_behind_the_output(words):
    with Path("/dev/full").open("w") as full:
        ended = bench(*words, stdout=full)
    assert ended.returncode == 2
    one_line(ended.stderr, "the disk is full")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_files_of_a_report_are_written_though_its_words_are_not(capsys, tmp_path):
    """In this process: what the one above shows of another is not the files."""
    written_to = tmp_path / "report"
    written_to.mkdir()
    words = write_upgrade(tmp_path, planted(n=200, q=30, dim=8))
    words += ["--report", written_to / "a.html"]
    with Path("/dev/full").open("w") as full, contextlib.redirect_stdout(full):
        one_line(ended_with(capsys, *words), "the disk is full")
    written = {path.name: path.stat().st_size for path in written_to.iterdir()}
    assert written.keys() == {"a.html", "a.json"} and all(written.values())
    with Path("/dev/full").open("w") as full, contextlib.redirect_stdout(full):
        one_line(ended_with(capsys, *words, "--fail-if", "share<1.4", code=3), "failed: share<1.4")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_files_of_a_run_are_written_though_its_table_is_not(capsys, tmp_path):
    words = ["run", "-m", "keep-old", "-p", "open-class", "-t", "toy", "--out", tmp_path / "out"]
    with Path("/dev/full").open("w") as full, contextlib.redirect_stdout(full):
        err = ended_with(capsys, *words, "--store", tmp_path / "store")
    one_line(err.splitlines(keepends=True)[-1], "the disk is full")
    assert (tmp_path / "out/site/index.html").exists() and any((tmp_path / "out/tables").iterdir())


def test_nobody_listens(monkeypatch):
    """As with ``>&-``, where Python has no stream at all."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit) as ended:
        app.main(["list", "methods"])
    assert ended.value.code in (0, None)


def test_how_long_a_run_takes_is_told_before_or_as_soon_as_it_can_be_known(capsys):
    """Of a track without records after one stage of each kind: here 60 and 30 s."""
    kinds = ("train", "evaluate") * 2
    stages = [titled(f"{kind} it (seed {i})") for i, kind in enumerate(kinds)]
    for track in ("glyphs", "nothing"):
        with Progress() as told:
            told.planned(stages, track)
            for i, stage in enumerate(stages):
                told.start(stage, i + 1, len(stages))
                told.done(stage, 60.0 if stage.kind == "train" else 30.0)
    first, *_, last = capsys.readouterr().err.split("stages to do")[1:]
    assert " on one core" in first.splitlines()[0] and "left" not in first
    assert last.startswith("; no record of nothing says how long")
    lines = [line for line in last.splitlines() if "left" in line]
    assert lines == ["[2/4] left: 2 min, as long as these took"]


def test_a_reader_that_has_enough():
    read, write = os.pipe()
    os.close(read)
    ended = bench("list", "methods", stdout=write)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_letters_that_the_encoding_lacks(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    ended = bench("published", stdout=subprocess.PIPE)
    assert (ended.returncode, ended.stderr) == (0, "") and ended.stdout.isascii()


def ended_with(capsys, *words, code=2):
    with pytest.raises(SystemExit) as ended:
        app.main([*map(str, words)])
    assert ended.value.code == code
    return capsys.readouterr().err


@pytest.mark.parametrize("verb", ["table", "show", "plot"])
def test_paths_that_cannot_be(capsys, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    for path in ("x" * 300, "a/" * 3000, tmp_path / "loop", tmp_path / "loop" / "x", "a\0b"):
        err = ended_with(capsys, verb, path)
        assert err.startswith("bench: ") and err.count("\n") == 1


def test_where_nothing_can_be_written(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "x", tmp_path / ("x" * 300), "/proc/x"):
        err = ended_with(capsys, "perf", "ranking", "--json", f"{out}/perf.json")
        one_line(err, "--json: cannot write")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a"), "bench: a: the disk is full"),
        (OSError(errno.EROFS, "Read-only file system", "a\x1b"), "bench: a\\x1b: Read-only file"),
        (OSError(errno.EMLINK, "Too many links", "a", None, "b"), "bench: a and b: Too many links"),
        (PermissionError(errno.EACCES, "Permission denied", Path("a")), "a: Permission denied"),
        (OSError("123 requested and 0 written"), "input or output: 123 requested"),
        (OSError(), "bench: input or output: OSError"),
        (FileNotFoundError(errno.ENOENT, "No such file", "x\ny"), "bench: x\\ny: No such"),
    ],
)
def test_errors_of_files_are_one_line(capsys, error, said):
    with pytest.raises(SystemExit) as ended, plain_errors():
        raise error
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    one_line(err)


def test_other_errors_stay_what_they_are():
    with pytest.raises(ZeroDivisionError), plain_errors():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), plain_errors():
        raise KeyboardInterrupt


ODD = "a\x1b[2J\x9b31m\u202eb\ud800é"
SHOWN = "a\\x1b[2J\\x9b31m\\u202eb\\ud800é"


def test_a_list_is_folded_on_a_terminal_alone(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    echo_entry("bct   ", "a classifier of the old model")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    echo_entry("bct   ", "a classifier of the old model")
    echo_entry("", "folded from its start on")
    echo_entry("a name longer than the half  ", "stays one line")
    assert capsys.readouterr().out.splitlines() == [
        "bct   a classifier of the old model",
        "bct   a classifier of",
        "      the old model",
        "folded from its start on",
        "a name longer than the half  stays one line",
    ]


def test_names_reach_the_terminal_as_text(capsys):
    sys.stdout.write(ODD.replace("\ud800", ""))  # the look below can see them
    assert "\x1b" in capsys.readouterr().out
    echo(ODD)
    echo(ODD, err=True)
    assert capsys.readouterr() == (f"{SHOWN}\n", f"{SHOWN}\n")
    echo_json({ODD: [ODD]})
    out = capsys.readouterr().out
    assert out.replace("\n", "").isprintable() and "é" in out
    assert json.loads(out) == {ODD: [ODD]}


def test_tables_on_a_terminal_are_text():
    cells = [[TextCell(ODD), TextCell(ODD)]]
    shown = terminal.plain([simple_table(ODD, ODD, (ODD, ODD), (ODD,), cells)])
    assert SHOWN in shown and shown.replace("\n", "").isprintable()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    write_whole(path, "before")
    real = Path.write_bytes

    def half(self, content):
        real(self, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "after all")
    assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("verb", ["leaderboard", "plot"])
def test_a_full_disk_under_a_writer(capsys, tmp_path, verb):
    record = next((ROOT / "results" / "measured").rglob("seed-0.json"))
    with small_disk(tmp_path / "disk", 64 * 1024) as disk:
        err = ended_with(capsys, verb, record.parent, "--out", disk)
        one_line(err, "the disk is full")
        pages = [path for path in disk.rglob("*") if path.suffix in (".html", ".png", ".svg")]
        assert all(path.stat().st_size for path in pages)


def test_pages_show_control_characters():
    table = simple_table(ODD, ODD, (ODD, ODD), (ODD,), [[TextCell(ODD), TextCell(ODD)]])
    page = templates.environment().from_string("{{ text }}{{ markup }}")
    for text in (html.render([table]), page.render(text=ODD, markup=Markup("<b>"))):
        assert SHOWN in text and text.replace("\n", "").isprintable()
    assert page.render(text="<b>", markup=Markup("<b>")) == "&lt;b&gt;<b>"
