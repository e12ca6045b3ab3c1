"""Hostile images, in folders of images as anybody may bring them."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image, PngImagePlugin

from support.hostile import TOKEN, Content, Files, Pipe, Sample, in_place
from support.hostile.values import TEXTS

CLASSES = ("ant", "bee", "cat", "dog", "elk", "fox")
EVIL = "elk/1.png"


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


def chunk(kind: bytes, data: bytes, size: int | None = None, crc: int | None = None) -> bytes:
    """A part of a PNG file."""
    check = zlib.crc32(kind + data) if crc is None else crc
    length = len(data) if size is None else size
    return struct.pack(">I", length) + kind + data + struct.pack(">I", check)


def png(
    width: int, height: int, data: bytes = b"", depth: int = 8, colour: int = 2,
    before: bytes = b"", after: bytes = b"",
) -> bytes:  # fmt: skip
    """A PNG file that declares a size, with compressed data of one's own."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"".join([
        b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), before, chunk(b"IDAT", zlib.compress(data, 9)),
        after, chunk(b"IEND", b""),
    ])  # fmt: skip


def _zeros(width: int, height: int, channels: int) -> bytes:
    return bytes((1 + width * channels) * height)


def images() -> Iterator[Sample]:
    """Hostile images and folders of images."""
    for name, raw in _files():
        yield Sample("image", name, {**sound(), EVIL: raw})
    yield from in_place("image", EVIL, {k: v for k, v in sound().items() if k != EVIL})
    yield from _folders()


def _files() -> Iterator[tuple[str, bytes]]:
    good = encoded(picture(1))
    jpeg = encoded(picture(1, (64, 64)), "JPEG")
    for share in (0.1, 0.5, 0.95):
        yield f"png-cut-at-{share}", good[: int(len(good) * share)]
        yield f"jpeg-cut-at-{share}", jpeg[: int(len(jpeg) * share)]
    for name, width, height in (
        ("2-to-31", 2**31 - 1, 2**31 - 1), ("100000", 100_000, 100_000), ("zero", 0, 0),
        ("one-wide", 1, 2**31 - 1), ("13000", 13_000, 13_000),
    ):  # fmt: skip
        yield f"png-declares-{name}", png(width, height)
    # Whole ones: all that is declared is there, as zeros that pack well.
    yield "png-of-170-megapixels", png(13_100, 13_000, _zeros(13_100, 13_000, 1), colour=0)
    yield "png-of-80-megapixels-rgba", png(9000, 8900, _zeros(9000, 8900, 4), colour=6)
    yield "png-of-85-megapixels-16-bit", png(9200, 9200, _zeros(9200, 9200, 2), 16, 0)
    yield "png-one-pixel-high", png(2_000_000, 1, _zeros(2_000_000, 1, 3))
    yield "png-one-pixel-wide", png(1, 2_000_000, _zeros(1, 2_000_000, 3))
    yield "png-data-beyond-its-size", png(16, 16, bytes(200 * 2**20))
    yield "png-data-short", png(16, 16, b"\0")
    yield "png-no-data", png(16, 16)
    yield "png-bad-filter", png(16, 16, b"\x09" * (49 * 16))
    yield "png-bad-colour", png(16, 16, _zeros(16, 16, 3), colour=9)
    yield "png-bad-depth", png(16, 16, _zeros(16, 16, 3), depth=77)
    yield "png-palette-missing", png(16, 16, b"\xff" * (17 * 16), colour=3)
    short = chunk(b"PLTE", b"\x01\x02\x03")
    yield "png-palette-too-short", png(16, 16, b"\xff" * (17 * 16), colour=3, before=short)
    bomb = zlib.compress(bytes(100 * 2**20), 9)
    data = _zeros(16, 16, 3)
    for name, kind, body in (
        ("text-bomb", b"zTXt", b"a\0\0" + bomb), ("profile-bomb", b"iCCP", b"a\0\0" + bomb),
        ("text-bomb-2", b"iTXt", b"a\0\1\0\0\0" + bomb),
        ("exif-nonsense", b"eXIf", b"MM\0*" + b"\xff" * 50),
        ("transparency", b"tRNS", b"\xff" * 500), ("gamma", b"gAMA", b""),
        ("unknown", b"XXXX", b""),
        ("text-escape", b"tEXt", b"Title\0\x1b[2J"), ("animation", b"acTL", b"\xff" * 8),
        ("frame", b"fcTL", b"\xff" * 26), ("size-again", b"IHDR", b"\0" * 13),
    ):  # fmt: skip
        yield f"png-{name}", png(16, 16, data, before=chunk(kind, body))
    yield "png-chunk-of-4-gib", png(16, 16, data, before=chunk(b"tEXt", b"a", 2**32 - 1))
    yield "png-wrong-check", png(16, 16, data, before=chunk(b"tEXt", b"a\0b", crc=1))
    texts = b"".join(chunk(b"tEXt", b"k%d\0v" % i) for i in range(20_000))
    yield "png-20000-texts", png(16, 16, data, before=texts)
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", TEXTS["script"])
    yield "png-with-markup", encoded(picture(1), pnginfo=info)
    frames = [picture(i, (64, 64)) for i in range(300)]
    yield "gif-of-300-frames", encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    gif = bytearray(encoded(picture(1), "GIF"))
    gif[6:10] = b"\xff\xff\xff\xff"
    yield "gif-declares-65535", bytes(gif)
    yield "gif-cut", bytes(gif[:40])
    tiff = encoded(picture(1, (64, 64)), "TIFF")
    for at in range(8, 100, 12):
        broken = bytearray(tiff)
        broken[-at : -at + 4] = b"\xff\xff\xff\xff"
        yield f"tiff-tag-{at}", bytes(broken)
    yield "tiff-itself-next", b"II*\0\x08\0\0\0\0\0\x08\0\0\0"
    yield "tiff-float-nan", encoded(Image.fromarray(np.full((16, 16), np.nan, np.float32)), "TIFF")
    yield "tiff-float-huge", encoded(Image.fromarray(np.full((16, 16), 3e38, np.float32)), "TIFF")
    bmp = encoded(picture(1), "BMP")
    for name, place, value in (
        ("negative-width", 18, -5), ("negative-height", 22, -(2**31)), ("huge", 18, 2**30),
        ("offset", 10, 2**31 - 1), ("header-size", 14, 2**31 - 1), ("colours", 46, 2**31 - 1),
    ):  # fmt: skip
        broken = bytearray(bmp)
        broken[place : place + 4] = struct.pack("<i", value)
        yield f"bmp-{name}", bytes(broken)
    webp = encoded(picture(1), "WEBP")
    yield "webp-cut", webp[: len(webp) // 2]
    yield "webp-size", webp[:4] + b"\xff\xff\xff\xff" + webp[8:]
    for orientation in (0, 9, 65_535):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield f"jpeg-orientation-{orientation}", encoded(picture(1), "JPEG", exif=exif)
    yield "jpeg-exif-nonsense", encoded(picture(1), "JPEG", exif=b"Exif\0\0MM\0*" + b"\xff" * 60)
    yield "jpeg-cmyk", encoded(picture(1, mode="CMYK"), "JPEG")
    yield "jpeg-65500-wide", encoded(Image.new("L", (65_500, 8)), "JPEG")
    yield "jpeg-of-85-megapixels", encoded(Image.new("L", (9200, 9200)), "JPEG")
    segments = b"\xff\xe1\xff\xff" + bytes(65_533)
    yield "jpeg-100-segments", jpeg[:2] + segments * 100 + jpeg[2:]
    yield "svg", f"<svg xmlns='http://www.w3.org/2000/svg' onload='{TOKEN}()'/>".encode()
    yield "postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) run\n"
    yield "pdf", b"%PDF-1.7\n"
    yield "icns", b"icns" + bytes(100)
    yield "ppm-huge", b"P6 100000 100000 255\n" + bytes(100)
    yield "text", b"no image\n"
    yield "one-pixel", encoded(picture(1, (1, 1)))
    for mode in ("1", "P", "LA", "I;16", "I", "F"):
        kind = "TIFF" if mode in "IF" else "PNG"
        yield f"mode-{mode}", encoded(Image.new(mode, (16, 16)), kind)


def _folders() -> Iterator[Sample]:
    files = sound()
    for name, text in {
        "not-utf-8": b"\xff\xfe\x80", "escape": b"\x1b[2J\x1b]0;x\x07",
        "right-to-left": "\u202eexe".encode(), "line-break": b"a\nbench: ok", "space": b" ",
        "markup": f"<img src=x{TOKEN} onerror={TOKEN}()>".encode(), "dash": b"-rf",
        "quote": f"\" onmouseover={TOKEN}() x='".encode(), "long": b"n" * 250,
        "rich": b"[bold red]x[", "glob": b"*?[a-z]", "backslash": b"..\\..", "tilde": b"~root",
        "percent": b"%s%n", "dollar": b"$(touch x)", "combining": ("a" + "\u0301" * 50).encode(),
    }.items():  # fmt: skip
        renamed: Files = {
            text + b"/" + bytes(key[4:], "ascii") if key.startswith("elk/") else key: content
            for key, content in files.items()
        }
        yield Sample("image", f"class-{name}", renamed)
        yield Sample("image", f"file-{name}", {**files, b"elk/" + text[:240] + b".png": b"x"})
    yield Sample("image", "pipe-beside", {**files, "elk/x.png": Pipe()})
    yield Sample("image", "no-classes", {"readme.txt": b"x"})
    yield Sample("image", "one-class", {k: v for k, v in files.items() if str(k)[:3] == "ant"})
    yield Sample("image", "one-image", {"ant/1.png": files["ant/1.png"]})
    yield Sample("image", "10000-classes", {f"c{i}/1.png": b"" for i in range(10_000)})
    deep = "/".join(["d"] * 500)
    yield Sample("image", "500-folders-deep", {**files, f"elk/{deep}/1.png": files["ant/1.png"]})
