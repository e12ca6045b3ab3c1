"""Hostile images, in folders of images as anybody may bring them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

from support.hostile import TOKEN, Content, Files, Pipe, Sample, in_place
from support.hostile.engine import TEXTS, Form, other_bytes

CLASSES = ("ant", "bee", "cat", "dog", "elk", "fox")
EVIL = "elk/1.png"
KINDS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")


def picture(seed: int, size: tuple[int, int] = (16, 16), mode: str = "RGB") -> Image.Image:
    """Noise around a colour."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(40 * (seed % 6), 40 * (seed % 6) + 50, (*size[::-1], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    """An image as a file."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def sound() -> dict[str, Content]:
    """A folder of six classes with four images each."""
    return {
        f"{name}/{k}.png": encoded(picture(10 * k + i))
        for i, name in enumerate(CLASSES)
        for k in range(4)
    }


def chunk(kind: bytes, data: bytes, size: int | None = None) -> bytes:
    """A part of a PNG file."""
    length = len(data) if size is None else size
    return struct.pack(">I", length) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, data: bytes = b"", depth: int = 8, colour: int = 2, before: bytes = b""
) -> bytes:
    """A PNG file that declares a size, with compressed data of one's own."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", head), before, chunk(b"IDAT", zlib.compress(data, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


def checked(raw: bytes) -> bytes:
    """A PNG file whose checksums fit, as far as its parts go."""
    made, at = bytearray(raw), 8
    while at + 12 <= len(made):
        end = at + 8 + int.from_bytes(made[at : at + 4], "big")
        if end + 4 > len(made):
            break
        made[end : end + 4] = struct.pack(">I", zlib.crc32(made[at + 4 : end]))
        at = end + 4
    return bytes(made)


def images() -> Iterator[Sample]:
    """Hostile images and folders of images."""
    rest = {k: v for k, v in sound().items() if k != EVIL}
    for kind in KINDS:
        raw = encoded(picture(1), kind)
        form = Form(repair=checked) if kind == "PNG" else Form()
        for name, made in other_bytes(raw, form, 6):
            yield Sample("image", f"{kind.lower()}-{name}", {**rest, EVIL: made})
    for name, made in _large():
        yield Sample("image", name, {**rest, EVIL: made})
    yield from in_place("image", EVIL, rest)
    yield from _folders()


def _large() -> Iterator[tuple[str, bytes]]:
    """Pictures that say to be large, that are, that unpack to more, and of unusual kinds."""
    for width, height in ((2**31 - 1, 2**31 - 1), (100_000, 100_000), (0, 0), (1, 2**31 - 1)):
        yield f"png-declares-{width}-by-{height}", png(width, height)
    # Whole ones: all that is declared is there, as zeros that pack well.
    for width, height, size, depth, colour in (
        (13_100, 13_000, 1, 8, 0), (9000, 8900, 4, 8, 6), (9200, 9200, 2, 16, 0),
        (2_000_000, 1, 3, 8, 2), (1, 2_000_000, 3, 8, 2),
    ):  # fmt: skip
        data = bytes((1 + width * size) * height)
        yield f"png-of-{width}-by-{height}", png(width, height, data, depth, colour)
    yield "png-data-beyond-its-size", png(16, 16, bytes(200 * 2**20))
    bomb, data = zlib.compress(bytes(100 * 2**20), 9), bytes(49 * 16)
    for name, kind, body in (
        ("text-bomb", b"zTXt", b"a\0\0" + bomb), ("profile-bomb", b"iCCP", b"a\0\0" + bomb),
        ("text-bomb-2", b"iTXt", b"a\0\1\0\0\0" + bomb),
        ("text-escape", b"tEXt", b"Title\0\x1b[2J" + TEXTS["script"].encode()),
        ("animation", b"acTL", b"\xff" * 8), ("size-again", b"IHDR", b"\0" * 13),
        ("exif-nonsense", b"eXIf", b"MM\0*" + b"\xff" * 50), ("large", b"tRNS", b"\xff" * 500),
    ):  # fmt: skip
        yield f"png-{name}", png(16, 16, data, before=chunk(kind, body))
    yield "png-chunk-of-4-gib", png(16, 16, data, before=chunk(b"tEXt", b"a", 2**32 - 1))
    texts = b"".join(chunk(b"tEXt", b"k%d\0v" % i) for i in range(20_000))
    yield "png-20000-texts", png(16, 16, data, before=texts)
    frames = [picture(i, (64, 64)) for i in range(300)]
    yield "gif-of-300-frames", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    for number in (np.nan, 3e38):
        image = Image.fromarray(np.full((16, 16), number, np.float32))
        yield f"tiff-float-{number}", encoded(image, "TIFF")
    yield "tiff-itself-next", b"II*\0\x08\0\0\0\0\0\x08\0\0\0"
    exif = Image.Exif()
    exif[0x0112] = 65_535
    yield "jpeg-orientation", encoded(picture(1), "JPEG", exif=exif)
    yield "jpeg-cmyk", encoded(picture(1, mode="CMYK"), "JPEG")
    yield "jpeg-65500-wide", encoded(Image.new("L", (65_500, 8)), "JPEG")
    yield "jpeg-of-85-megapixels", encoded(Image.new("L", (9200, 9200)), "JPEG")
    jpeg = encoded(picture(1), "JPEG")
    yield "jpeg-100-segments", jpeg[:2] + (b"\xff\xe1\xff\xff" + bytes(65_533)) * 100 + jpeg[2:]
    yield "svg", f"<svg xmlns='http://www.w3.org/2000/svg' onload='{TOKEN}()'/>".encode()
    yield "postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) run\n"
    yield "ppm-huge", b"P6 100000 100000 255\n" + bytes(100)
    yield "one-pixel", encoded(picture(1, (1, 1)))
    for mode in ("1", "P", "LA", "I;16", "I", "F"):
        kind = "TIFF" if mode in "IF" else "PNG"
        yield f"mode-{mode}", encoded(Image.new(mode, (16, 16)), kind)


def _folders() -> Iterator[Sample]:
    files = sound()
    names = {
        name: text.replace("/", "|").encode("utf-8", "surrogatepass")[:240]
        for name, text in list(TEXTS.items())[::2] if text.strip(".") and "\0" not in text
    } | {"not-utf-8": b"\xff\xfe\x80", "glob": b"*?[a-z]", "tilde": b"~root"}  # fmt: skip
    for i, (name, text) in enumerate(names.items()):
        renamed: Files = {
            text + b"/" + key[4:].encode() if key.startswith("elk/") else key: content
            for key, content in files.items()
        }
        if i % 2:
            renamed = {**files, b"elk/" + text + b".png": b"x"}
        yield Sample("image", f"{'file' if i % 2 else 'class'}-{name}", renamed)
    yield Sample("image", "pipe-beside", {**files, "elk/x.png": Pipe()})
    yield Sample("image", "no-classes", {"readme.txt": b"x"})
    yield Sample("image", "one-image", {"ant/1.png": files["ant/1.png"]})
    yield Sample("image", "10000-classes", {f"c{i}/1.png": b"" for i in range(10_000)})
    deep = "/".join(["d"] * 500)
    yield Sample("image", "500-folders-deep", {**files, f"elk/{deep}/1.png": files["ant/1.png"]})
