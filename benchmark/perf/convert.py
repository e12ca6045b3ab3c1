"""Converting a stored gallery from disk to disk, against embedding its images anew."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.contract.conversion import Conversion, Dims
from benchmark.harness.cost import multiply_adds
from benchmark.models.backbones import Encoder
from benchmark.models.transformation import Transformation
from benchmark.perf import measure
from benchmark.training.embedding import embed
from benchmark.upgrade.formats import sink_class
from benchmark.upgrade.formats.convert import Converted, convert
from benchmark.upgrade.formats.sink import writing

_MAP = "fct's map, disk to disk"
_MODELS = {
    # name -> backbone, side of an image, channels, images that are timed
    "convnet-32 at 32 x 32, as the tracks": ("convnet-32", 32, 1, 512),
    "ResNet-50 at 224 x 224, as the paper": ("timm:resnet50", 224, 3, 16),
}


def rows(items: int = 1_000_000, dim: int = 128, side: int = 64) -> list[dict[str, Any]]:
    """Time the map of FCT's appendix D.1, as converted once for all items, and two new models.

    Weights are random: what they are changes no time. The models embed some images only, and
    their time is extrapolated. See ``benchmark.perf.run``; ``size`` tells items a second and
    multiply-adds an item (FCT, Figure 3).
    """
    torch.manual_seed(0)
    transformation = Transformation(dim, side, dim, 2048, normalise=True).eval()
    one = torch.zeros(1, dim), torch.zeros(1, side) if side else None
    map_work, _ = multiply_adds(transformation, *one)
    timings = {_MAP: _convert(transformation, items, dim, side)}
    size = f"{items:,} x {dim}" + (f" and side {side}" if side else "")
    out = measure.rows(timings, f"{size}; {_rate(items, timings[_MAP].seconds, map_work)}")
    for name, (backbone, pixels, channels, images) in _MODELS.items():
        model = Encoder(backbone, dim, channels, pixels).eval()
        work, _ = multiply_adds(model, torch.zeros(1, channels, pixels, pixels))
        timing = _embed(model, (images, channels, pixels, pixels))
        timing.seconds *= items / images
        size = f"{images} images timed; {_rate(items, timing.seconds, work)}"
        timings[f"{name} (extrapolated)"] = timing
        out.append(measure.rows(timings, f"{size} ({work / map_work:.3g} x)", _MAP)[-1])
    return out


def _convert(transformation: Any, items: int, dim: int, side: int) -> measure.Timing:
    parts = {"convert": transformation}
    conversion = Conversion("fct", {}, "cosine", Dims(old=dim, new=dim, side=side), False, parts)
    with tempfile.TemporaryDirectory(prefix="bench-perf-") as name:
        folder = Path(name)

        def call(n: int) -> Converted:
            beside = folder / f"side-{n}.npy" if side else None
            source, target = folder / f"old-{n}.npy", folder / "new.npy"
            return convert(conversion, source, target, side=beside, force=True)

        for n in (min(items, 1024), items):  # the first one warms up
            _write(folder / f"old-{n}.npy", n, dim)
            if side:
                _write(folder / f"side-{n}.npy", n, side)
            timing = measure.once(lambda n=n: call(n))  # type: ignore[misc]
    return timing


def _write(path: Path, n: int, dim: int) -> None:
    rng = np.random.default_rng(0)
    sink = sink_class(path)(path, n, "float32", None)
    with writing([sink]):
        for start in range(0, n, 4096):
            sink.write(rng.standard_normal((min(4096, n - start), dim), dtype=np.float32))


def _embed(model: Encoder, shape: tuple[int, ...]) -> measure.Timing:
    pictures = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    cpu = torch.device("cpu")
    embed(model, pictures[: shape[0] // 4], cpu)
    return measure.together({"": lambda: embed(model, pictures, cpu)}, 3)[""]


def _rate(items: int, seconds: float, work: int) -> str:
    return f"{items / max(seconds, 1e-9):,.0f}/s, {work / 1e6:,.2f} M multiply-adds each"
