"""Reading with limits, seals, and writing whole."""

import errno
import os
import shutil
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark.config import files
from benchmark.errors import BenchError, printable

TEXTS = st.text('ab\x00\x1bé中\u2028\\"', max_size=4)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(VALUES | TEXTS, lambda v: st.lists(v) | st.dictionaries(TEXTS, v), max_leaves=5)


@settings(deadline=None)
@given(value=st.dictionaries(TEXTS, JSON, max_size=3))
def test_sealed_files_come_back(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("sealed") / "a.json"
    files.write_sealed(path, value)
    assert files.read_sealed(path, 1_000_000) == value


def test_an_edit_of_a_sealed_file_is_noticed(tmp_path):
    path = tmp_path / "a.json"
    files.write_sealed(path, {"map": 0.5, "cases": {"old/old": [1, 2]}})
    text = path.read_text()
    swaps = [("0.5", "0.6"), ("old/old", "old/new"), ("[1,2]", "[2,1]")]
    changed = [text.replace(*swap) for swap in swaps] + ["{}", "[]", text[:-5], ""]
    for each in changed:
        path.write_text(each)
        with pytest.raises(BenchError, match=r"a\.json: damaged"):
            files.read_sealed(path, 10_000)
    path.write_text(text.replace("\n", "\n\n"))  # layout is no content
    assert files.read_sealed(path, 10_000)["map"] == 0.5


def test_every_byte_of_a_sealed_file_counts(tmp_path):
    path = tmp_path / "a.json"
    value = {"name": "bct", "map": 0.25, "n": [1, 2, 3]}
    files.write_sealed(path, value)
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        try:
            assert files.read_sealed(path, 10_000) == value, place  # white space only
        except BenchError as error:
            assert "damaged" in str(error)


def test_reading_has_a_limit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert files.read_bytes(path, 5) == b"12345"
    with pytest.raises(BenchError, match="expected at most 4 bytes, got 5"):
        files.read_bytes(path, 4)


@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/stdin"])
def test_devices_are_not_read(tmp_path, endless):
    link = tmp_path / "seed-0.json"
    link.symlink_to(endless)
    with pytest.raises(BenchError, match=r"expected a regular file|cannot be read"):
        files.read_bytes(link, 10)


def test_pipes_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(BenchError, match=r"regular file|cannot be read: Is a directory"):
            files.read_bytes(tmp_path / name, 10)
    with pytest.raises(BenchError, match="cannot be read"):
        files.read_bytes(tmp_path / "missing\0", 10)


def test_nothing_is_left_of_a_failed_write(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        files.write_json(tmp_path / "a.json", {"map": float("nan")})
    with pytest.raises(UnicodeEncodeError):
        files.write_json(tmp_path / "a.json", {"name": "\ud800"})
    assert list(tmp_path.iterdir()) == []


def test_threads_do_not_take_each_others_neighbour(tmp_path):
    """Two files of one folder that are written at once by one process."""
    failed = []

    def write(name):
        content = name.encode() * 200_000
        for _ in range(30):
            try:
                files.write_whole(tmp_path / name, content)
                if (tmp_path / name).read_bytes() != content:
                    failed.append(name)
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(path.name for path in tmp_path.iterdir()) == [*"abcd"]


@given(text=st.text())
def test_nothing_of_a_text_is_carried_out_by_a_terminal(text):
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    shown.encode()


def test_errors_show_control_characters():
    assert str(BenchError("a\x1b[31mb\u202ec\ud800")) == "a\\x1b[31mb\\u202ec\\ud800"
    assert printable("café 中 ±") == "café 中 ±"


def test_only_errors_without_a_number_are_put_down_to_a_full_disk(tmp_path, monkeypatch):
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    for error, said in (
        (FileNotFoundError(errno.ENOENT, "No such file"), "No such file"),
        (OSError(errno.ENOSPC, "No space left"), "the disk is full"),
        (RuntimeError("unexpected pos 64"), "the disk is full"),
    ):
        with pytest.raises(Exception, match=said), files.plain_io_errors(tmp_path):
            raise error
