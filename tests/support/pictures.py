"""Small image files."""

import hashlib
import io

import numpy as np
from PIL import Image


def png(pixels) -> bytes:
    """Pixels ``[h, w]`` or ``[h, w, 3]`` as an encoded image."""
    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(out, "PNG")
    return out.getvalue()


def jpeg(value, size=(112, 112)) -> bytes:
    """An image of one red."""
    out = io.BytesIO()
    Image.new("RGB", size, (value % 256, 0, 0)).save(out, "JPEG", quality=100)
    return out.getvalue()


def write_jpeg(path, value, size=(24, 24)):
    """A file with an image of one red."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jpeg(value, size))


def write_noise(path, color=(200, 40, 40), size=(40, 30), mode="RGB", **options):
    """A file with noise around a colour, another for each path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(int(hashlib.sha256(str(path).encode()).hexdigest()[:8], 16))
    pixels = np.clip(np.array(color) + rng.integers(-20, 20, (size[1], size[0], 3)), 0, 255)
    Image.fromarray(pixels.astype(np.uint8)).convert(mode).save(path, **options)
    return path
