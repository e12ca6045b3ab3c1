"""Downloads of datasets from their official addresses: resumed, and kept only with their hash.

torchvision's and pooch's downloaders begin anew where a connection broke, so the part that is there
is asked for no more by a range request of the standard library.
"""

import http.client
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from benchmark.config.declarations import Download
from benchmark.config.files import plain_io_errors, sha256_of
from benchmark.data.files import contents_hash
from benchmark.errors import BenchError

_BLOCK = 2**18
_PATIENCE = 60.0  # seconds without a byte
_MORE = 2  # an archive that is packed anew may be this many times as large
_RANGE_LEFT = 416  # HTTP: the range begins where the file ends


def is_original(path: Path, wanted: Download) -> bool:
    """Tell whether a file has the pinned size and SHA-256."""
    exact = wanted.packed_anew or path.stat().st_size == wanted.n_bytes
    return exact and _digest(path, wanted) == wanted.sha256


def fetch(
    wanted: Download, folder: Path, progress: Callable[[int], None] = lambda n_bytes: None
) -> bool:
    """Download a file into a folder, from where an earlier attempt stopped.

    Args:
        wanted: The file, its address and its hash.
        folder: Where to keep it; the part that has come lies beside it as ``NAME.part``.
        progress: Called with the bytes that are there, again and again.

    Returns:
        False if the very file was there already.

    Raises:
        BenchError: If another file of that name is there, the address cannot be reached, the
            connection breaks (what has come is kept), or what came has another hash (and is not).
    """
    target = folder / wanted.name
    if target.exists():
        if not is_original(target, wanted):
            raise BenchError(
                f"{target}: is there, and not the file of {wanted.url} (SHA-256 {wanted.sha256}); "
                "move it away, or let `bench data check` say whether it will do"
            )
        return False
    part = target.with_name(f"{target.name}.part")
    with plain_io_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _receive(wanted, part, progress)
        found = _digest(part, wanted)
        if found != wanted.sha256:
            size = part.stat().st_size
            part.unlink()
            raise BenchError(
                f"{wanted.url}: expected {'about ' * wanted.packed_anew}{wanted.n_bytes} bytes of "
                f"SHA-256 {wanted.sha256}, got {size} of {found}; nothing was kept"
            )
        part.replace(target)
    return True


def _receive(wanted: Download, part: Path, progress: Callable[[int], None]) -> None:
    """Append to a part what it lacks."""
    have = part.stat().st_size if part.exists() and not wanted.packed_anew else 0
    if have >= wanted.n_bytes:
        return  # its hash decides
    request = urllib.request.Request(
        wanted.url, headers={"User-Agent": "compatbench", "Range": f"bytes={have}-"}
    )
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            goes_on = answer.status == http.client.PARTIAL_CONTENT and (
                answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            )
            with part.open("ab" if goes_on else "wb") as file:
                most = wanted.n_bytes * (_MORE if wanted.packed_anew else 1)
                _copy(answer, file, most, progress)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename:
            raise  # of the disk
        if getattr(error, "code", None) == _RANGE_LEFT:
            part.unlink(missing_ok=True)
        reason = str(getattr(error, "reason", "") or error) or type(error).__name__
        kept = "" if wanted.packed_anew else _kept(part)
        raise BenchError(f"{wanted.url}: {' '.join(reason.split()):.200}{kept}") from error
    if part.stat().st_size < wanted.n_bytes and not wanted.packed_anew:
        raise BenchError(f"{wanted.url}: the connection ended early{_kept(part)}")


def _copy(source: IO[bytes], file: IO[bytes], most: int, progress: Callable[[int], None]) -> None:
    """Copy at most one byte more than is expected, which shows that there are more."""
    while file.tell() <= most and (block := source.read(min(_BLOCK, most + 1 - file.tell()))):
        file.write(block)
        progress(file.tell())


def _kept(part: Path) -> str:
    size = part.stat().st_size if part.exists() else 0
    return f"; {size / 1e6:.1f} MB are kept, the same command goes on from there" if size else ""


def _digest(path: Path, wanted: Download) -> str:
    """SHA-256 of the file, or of what it holds; none of an archive that cannot be read."""
    if not wanted.packed_anew:
        return sha256_of(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(each.filename for each in archive.infolist() if not each.is_dir())
            n_bytes = sum(each.file_size for each in archive.infolist())
            if n_bytes > _MORE * wanted.n_bytes:
                return f"a zip of {n_bytes} bytes"
            return contents_hash((name, archive.read(name)) for name in members)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError) as error:
        return f"no whole zip ({' '.join(str(error).split()):.100})"
