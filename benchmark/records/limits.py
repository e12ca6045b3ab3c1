"""Limits of what others wrote: JSON of a record or a header, and details files as they lie on disk.

JSON within them can be read, compared, printed and drawn in seconds, whatever it says. A details
file is safetensors in xz, or gzip where an evaluation wrote it.
"""

import json
import lzma
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from benchmark.config.checks import LARGEST
from benchmark.errors import BenchError

MOST_VALUES = 40_000
"""Values of one document; the largest committed record has 6,592."""
DEEPEST = 20
"""Mappings and lists within each other."""
LONGEST_KEY = 200
LONGEST_TEXT = 10_000
_LARGEST_WHOLE = 2**63
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and line feed, and lone surrogates."""
MOST_PACKED = 64 * 1024
"""Bytes of a details file."""
_MOST_UNPACKED = 16 * MOST_PACKED  # bytes; what unpacks to more is no details file of ours
_GZIP = 16 + zlib.MAX_WBITS  # what zlib takes for gzip
_GZIP_BEGINS = b"\x1f\x8b"
_MOST_MEMORY = 8 * 2**20  # bytes that xz may take


def parse_json(text: bytes, where: str | Path) -> Any:
    """The value of a JSON document of somebody else's.

    Raises:
        BenchError: If it is not JSON, too large or nested too deeply, or has a number out of range,
            a control character in a text, or a key that does not print on one line.
    """
    try:
        value = from_json(text, allow_inf_nan=False)  # JSON has no NaN
    except ValueError as error:
        raise BenchError(f"{where}: not valid JSON: {error}") from error
    _check(value, str(where))
    return value


def _check(document: Any, where: str) -> None:
    n = 0
    todo: list[tuple[dict[str, Any] | list[Any], str, int]] = [({"": document}, "", 0)]
    while todo:
        part, place, depth = todo.pop()
        n += len(part)
        if n > MOST_VALUES:
            raise BenchError(f"{where}: expected at most {MOST_VALUES} values")
        if depth > DEEPEST:
            raise BenchError(f"{where}: nested more than {DEEPEST} deep at {place:.60}")
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(key, str) and not (len(key) <= LONGEST_KEY and key.isprintable()):
                raise BenchError(
                    f"{where}: {place:.60}: expected a key of at most {LONGEST_KEY} printable "
                    f"characters, got {key!r:.60}"
                )
            if type(value) is float and -LARGEST <= value <= LARGEST:
                continue  # nearly all values; the other tests take thrice as long
            if isinstance(value, dict | list):
                todo.append((value, f"{place}.{key}".strip("."), depth + 1))
            elif wrong := _wrong(value):
                name = f"{place}.{key}".strip(".")
                raise BenchError(f"{where}: {name:.200}: {wrong}, got {value!r:.60}")


def _wrong(value: Any) -> str:
    """Expected form of a text or a number that is out of range; else nothing."""
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"expected at most {LONGEST_TEXT} characters"
        if not value.isprintable() and _CONTROL.search(value):
            return "expected text without control characters"
    elif isinstance(value, int):
        if not -_LARGEST_WHOLE <= value < _LARGEST_WHOLE:
            return "expected a whole number of at most 64 bits"
    elif value is not None and not -LARGEST <= value <= LARGEST:
        return f"expected a number within ±{LARGEST:g}"
    return ""


def metadata(path: Path, packed: bytes) -> Mapping[str, str]:
    """Metadata of a details file, whose beginning is unpacked alone; BenchError if damaged."""
    return metadata_of(path, unpacked(path, packed, whole=False))


def metadata_of(path: Path, raw: bytes) -> Mapping[str, str]:
    """The metadata of an unpacked file, or of its beginning; BenchError if they are none."""
    try:
        found = from_json(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
        if not all(isinstance(text, str) for text in found.values()):
            raise TypeError("its metadata are no text")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise BenchError(f"{path}: not a details file: {reason:.200}") from error
    return dict(found)


def ordered(raw: bytes) -> bytes:
    """The same safetensors file with sorted metadata, whose order differs from call to call."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # arrays begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + raw[end:]


def unpacked(path: Path, packed: bytes, whole: bool = True) -> bytes:
    """Unpack xz or gzip; if not the ``whole``, up to the end of the header.

    Raises:
        BenchError: If it is neither, not one file, or unpacks to more than any of ours.
    """
    kind = "gzip" if packed.startswith(_GZIP_BEGINS) else "xz"
    try:
        if kind == "gzip":
            return _all_of(path, zlib.decompressobj(wbits=_GZIP), packed, kind)
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_MEMORY)
        if whole:
            return _all_of(path, unpacker, packed, kind)
        raw = unpacker.decompress(packed, 8)
        size = min(int.from_bytes(raw, "little"), _MOST_UNPACKED)
        return raw + (unpacker.decompress(b"", size) if not unpacker.eof else b"")
    except (zlib.error, lzma.LZMAError) as error:
        raise BenchError(f"{path}: not {kind}: {error}") from error


def _all_of(path: Path, unpacker: Any, packed: bytes, kind: str) -> bytes:
    # One call instead of a file's many: a site unpacks thousands.
    raw: bytes = unpacker.decompress(packed, _MOST_UNPACKED + 1)
    if len(raw) > _MOST_UNPACKED:
        raise BenchError(f"{path}: unpacks to more than {_MOST_UNPACKED} bytes")
    if not unpacker.eof or unpacker.unused_data:
        wrong = "goes on behind its end" if unpacker.eof else "ends before its end"
        raise BenchError(f"{path}: not {kind}: the file {wrong}")
    return raw
