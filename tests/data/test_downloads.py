"""Downloads from a server on this machine that breaks off, ignores ranges or serves other bytes."""

import dataclasses
import hashlib
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from support.command import call

from benchmark.config.declarations import Download, Origin
from benchmark.data.downloads import fetch, is_original
from benchmark.data.omniglot import Omniglot
from benchmark.errors import BenchError

CONTENT = np.random.default_rng(0).bytes(700_000)


class Server(ThreadingHTTPServer):
    """Serves ``content``; ``breaks`` is after how many bytes each answer ends."""

    content, breaks, ranges, asked = CONTENT, 10**9, True, []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        first = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
        self.server.asked.append(first)
        content = self.server.content
        if self.path == "/missing":
            self.send_error(404)
            return
        if first >= len(content):
            self.send_error(416)
            return
        first = first if self.server.ranges else 0
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        self.wfile.write(content[first : first + self.server.breaks])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Server.asked = []
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def wanted(server):
    url = f"http://127.0.0.1:{server.server_port}/file"
    return Download("file.zip", url, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


def test_whole(wanted, server, tmp_path):
    told = []
    assert fetch(wanted, tmp_path / "new", told.append)
    assert (tmp_path / "new" / "file.zip").read_bytes() == CONTENT
    assert told == sorted(told) and told[-1] == len(CONTENT)
    assert not fetch(wanted, tmp_path / "new"), "it is there"
    assert server.asked == [0]


def test_a_broken_download_goes_on_where_it_stopped(wanted, server, tmp_path):
    server.breaks = 300_000
    for _ in range(2):
        with pytest.raises(BenchError, match=r"MB are kept, the same command goes on"):
            fetch(wanted, tmp_path)
    assert fetch(wanted, tmp_path)
    assert server.asked == [0, 300_000, 600_000]
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip"]


def test_a_server_without_ranges_begins_anew(wanted, server, tmp_path):
    (tmp_path / "file.zip.part").write_bytes(b"x" * 1000)
    server.ranges = False
    assert fetch(wanted, tmp_path)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "content", [CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]), CONTENT + b"more"], ids=["other", "longer"]
)
def test_other_bytes_are_not_kept(wanted, server, tmp_path, content):
    server.content = content
    with pytest.raises(BenchError, match=r"expected 700000 bytes of SHA-256 .*nothing was kept"):
        fetch(wanted, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_damaged_part_is_dropped(wanted, server, tmp_path):
    (tmp_path / "file.zip.part").write_bytes(b"x" * 1000)
    with pytest.raises(BenchError, match="nothing was kept"):
        fetch(wanted, tmp_path)
    assert fetch(wanted, tmp_path)


def test_another_file_of_that_name_stays(wanted, server, tmp_path):
    (tmp_path / "file.zip").write_bytes(b"mine")
    with pytest.raises(BenchError, match="is there, and not the file of"):
        fetch(wanted, tmp_path)
    assert (tmp_path / "file.zip").read_bytes() == b"mine" and not server.asked


def test_a_shorter_file_on_the_server(wanted, server, tmp_path):
    server.content = CONTENT[:1000]
    for _ in range(2):  # the second attempt asks for more than there is
        with pytest.raises(BenchError):
            fetch(wanted, tmp_path)
    assert not (tmp_path / "file.zip").exists()


def test_an_address_that_is_not_there(wanted, tmp_path):
    gone = Download(wanted.name, wanted.url.replace("/file", "/missing"), *("0" * 64, 10))
    with pytest.raises(BenchError, match=r"/missing: Not Found$"):
        fetch(gone, tmp_path)
    closed = Download(wanted.name, "http://127.0.0.1:9/file", "0" * 64, 10)
    with pytest.raises(BenchError, match=r"^http://127.0.0.1:9/file: .*refused"):
        fetch(closed, tmp_path)


def test_command(wanted, server, tmp_path, monkeypatch):
    origin = Origin("https://a.page", licence="CC0", downloads=(wanted,))
    monkeypatch.setattr(Omniglot, "origin", origin)
    code, printed, _ = call("data", "get", "omniglot", "--out", tmp_path)
    told = f"licence: CC0\n{tmp_path}/file.zip: downloaded, as published\n"
    assert (code, printed) == (0, told)


@pytest.mark.parametrize(
    ("name", "message"),
    [("imagenet", "may not be downloaded: register"), ("glyphs", "has no files"),
     ("cifar", "did you mean 'cifar100'")],
)  # fmt: skip
def test_what_cannot_be_downloaded_is_one_line(name, message, tmp_path):
    code, _, error = call("data", "get", name, "--out", tmp_path)
    assert code == 2 and message in error and len(error.splitlines()) == 1


def packed(folder, files, level):
    """A zip of these files in this order, and its bytes."""
    folder.mkdir(exist_ok=True)
    file = folder / "a.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        archive.mkdir("of")
        for name, content in files.items():
            archive.writestr(name, content)
    return file.read_bytes()


def test_an_archive_that_is_packed_anew_is_known_by_its_files(wanted, server, tmp_path):
    files = {"of/b": b"b" * 1000, "of/a": CONTENT[:2000]}
    # By hand: names in order, each with its size and the hash of its content.
    lines = [
        f"{n}\0{len(files[n])}\0".encode() + hashlib.sha256(files[n]).digest()
        for n in sorted(files)
    ]
    wanted = dataclasses.replace(
        wanted, sha256=hashlib.sha256(b"".join(lines)).hexdigest(), n_bytes=3500, packed_anew=True
    )
    turned = dict(reversed(files.items()))
    for number, (order, level) in enumerate([(files, 9), (turned, 0)]):
        server.content = packed(tmp_path, order, level)
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "file.zip.part").write_bytes(b"left by a broken download")
        assert fetch(wanted, tmp_path / f"{number}")
        assert is_original(tmp_path / f"{number}" / "file.zip", wanted)
    assert set(server.asked) == {0}, "what has come may be of another packing"
    others = {
        "other": packed(tmp_path, files | {"of/a": CONTENT[1:2001]}, 9),
        "more": packed(tmp_path, files | {"of/c": b""}, 9),
        "large": packed(tmp_path, files | {"of/c": b"0" * 9000}, 9),
        "cut": server.content[:-30],
        "encrypted": server.content.replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"),
    }
    for name, server.content in others.items():
        with pytest.raises(BenchError, match="expected about 3500 bytes of SHA-256"):
            fetch(wanted, tmp_path / name)
        assert not list((tmp_path / name).iterdir())
    assert others["encrypted"] != others["other"] and b"\x14\0\1\0" in others["encrypted"]
