"""The small copy of ``grocery``: ``python -m benchmark.data.grocery_copy ROOT OUT``.

Squares of 96 pixels from the middle of each photograph as WebP, whatever its name, with the table,
the lists and the descriptions, in one archive; the licence beside it.
"""

import io
import sys
import zipfile
from pathlib import Path

from PIL import Image

from benchmark.config.files import read_bytes
from benchmark.data.grocery import ARCHIVE, PARTS, TABLE, listed, products
from benchmark.data.images import MOST_BYTES, View, decode_view

SIDE, QUALITY = 96, 60
_DATE = (1980, 1, 1, 0, 0, 0)  # equal photographs, equal archive


def pack(root: Path, out: Path) -> Path:
    """Write the copy of the folder ``root`` into the folder ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    plain = [TABLE, *(f"{part}.txt" for part in PARTS)]
    plain += [product.description for product in products(root)]
    with zipfile.ZipFile(out / ARCHIVE, "w", zipfile.ZIP_STORED) as archive:
        for name in plain:
            raw = read_bytes(root / name, MOST_BYTES)
            archive.writestr(zipfile.ZipInfo(name, _DATE), raw, zipfile.ZIP_DEFLATED)
        for part in PARTS:
            for name, _ in listed(root, part):
                archive.writestr(zipfile.ZipInfo(name, _DATE), _small(root / name))
    (out / "LICENSE").write_bytes(read_bytes(root / "LICENSE", MOST_BYTES))
    return out / ARCHIVE


def _small(path: Path) -> bytes:
    pixels = decode_view(path, View(SIDE, SIDE), str(path))
    file = io.BytesIO()
    Image.fromarray(pixels.transpose(1, 2, 0)).save(file, "WEBP", quality=QUALITY, method=6)
    return file.getvalue()


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
