"""Converting a stored gallery from disk to disk, against embedding its images anew."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.perf import measure, peers

_MAP = "fct's map, disk to disk"
_MODELS = {
    # name -> backbone, side of an image, channels, images that are timed
    "convnet-32 at 32 x 32, as the tracks": ("convnet-32", 32, 1, 512),
    "ResNet-50 at 224 x 224, as the paper": ("timm:resnet50", 224, 3, 16),
}


def rows(items: int = 1_000_000, dim: int = 128, side: int = 64) -> list[dict[str, Any]]:
    """Time the map of FCT's appendix D.1, as converted once for all items, and two new models.

    Weights are random: what they are changes no time. The models embed some images only, and
    their time is extrapolated.

    Args:
        items: Stored vectors.
        dim: Dimension of the old and of the new embedding.
        side: Dimension of the side-information; 0 is none.

    Returns:
        Rows, see ``benchmark.perf.run``; ``size`` tells items a second and multiply-adds an item
        (FCT, Figure 3).
    """
    import torch

    from benchmark.harness.cost import multiply_adds
    from benchmark.models.transformation import Transformation

    torch.manual_seed(0)
    made = Transformation(dim, side, dim, 2048, normalise=True).eval()
    given = torch.zeros(1, dim), torch.zeros(1, side) if side else None
    work, _ = multiply_adds(made, *given)
    found = _convert(made, items, dim, side)
    size = f"{items:,} x {dim}" + (f" and side {side}" if side else "")
    out = [measure.row(_MAP, found, f"{size}; {_rate(items, found.seconds, work)}")]
    for name, (backbone, pixels, channels, images) in _MODELS.items():
        if not backbone.startswith("timm:") or peers.available("timm"):
            out.append(_embed(name, backbone, pixels, channels, images, items, dim, found, work))
    return out


def _convert(made: Any, items: int, dim: int, side: int) -> measure.Timing:
    from benchmark.contract.conversion import Conversion, Dims

    conversion = Conversion("fct", {}, "cosine", Dims(dim, dim, side), False, {"convert": made})
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        folder = Path(name)

        def call(n: int) -> int:
            beside = folder / f"side-{n}.npy" if side else None
            return conversion.convert_file(folder / f"old-{n}.npy", folder / "new.npy", side=beside)

        for n in (min(items, 1024), items):  # the first one warms up
            _write(folder / f"old-{n}.npy", n, dim)
            if side:
                _write(folder / f"side-{n}.npy", n, side)
            found = measure.once(lambda n=n: call(n))  # type: ignore[misc]
    return found


def _write(path: Path, n: int, dim: int) -> None:
    from benchmark.data.array_files import writing

    rng = np.random.default_rng(0)
    with writing([path], n) as (write,):
        for start in range(0, n, 4096):
            write(rng.standard_normal((min(4096, n - start), dim), dtype=np.float32))


def _embed(
    name: str, backbone: str, pixels: int, channels: int, images: int, items: int, dim: int,
    converted: measure.Timing, map_work: int,
) -> dict[str, Any]:  # fmt: skip
    import torch

    from benchmark.harness.cost import multiply_adds
    from benchmark.models.backbones import Encoder
    from benchmark.training.embedding import embed

    model = Encoder(backbone, dim, channels, pixels).eval()
    work, _ = multiply_adds(model, torch.zeros(1, channels, pixels, pixels))
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (images, channels, pixels, pixels), dtype=np.uint8)
    cpu = torch.device("cpu")
    embed(model, pictures[: images // 4], cpu)
    found = measure.together({name: lambda: embed(model, pictures, cpu)}, 3)[name]
    found.seconds *= items / images
    size = f"{images} images timed; {_rate(items, found.seconds, work)} ({work / map_work:.3g} x)"
    return measure.row(f"{name} (extrapolated)", found, size, _MAP, converted.seconds)


def _rate(items: int, seconds: float, work: int) -> str:
    return f"{items / max(seconds, 1e-9):,.0f}/s, {work / 1e6:,.2f} M multiply-adds each"
