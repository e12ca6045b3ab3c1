"""Details files as they lie on disk: safetensors in xz, or gzip where an evaluation wrote them."""

import json
import lzma
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from benchmark.errors import BenchError

MOST_PACKED = 64 * 1024
"""Bytes of a details file."""
_MOST_UNPACKED = 16 * MOST_PACKED  # bytes; what unpacks to more is no details file of ours
_GZIP = 16 + zlib.MAX_WBITS  # what zlib takes for gzip
_GZIP_BEGINS = b"\x1f\x8b"
_MOST_MEMORY = 8 * 2**20  # bytes that xz may take


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
