"""Models tried on a few images of the data: what does not fit them is told before training."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from benchmark.config.backbones import OWN_BACKBONE
from benchmark.config.entry_points import one_line
from benchmark.config.recipes import ModelSpec
from benchmark.errors import BenchError

_OF_FACES = 112  # pixels a side that these networks are for


@contextmanager
def misfits_told(spec: ModelSpec, size: Sequence[int], batch: int = 2) -> Iterator[None]:
    """One line for whatever a backbone raises that is built for images of a size, or tried on them.

    ``size`` is height and width, and ``batch`` the number of images a step.
    """
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        if batch < 2 and "more than 1 value per channel" in str(error):
            raise BenchError(
                f"recipe.batch_size: expected at least 2, as the model of backbone "
                f"'{spec.backbone}' normalises over a batch, got {batch}"
            ) from error
        height, width = (spec.input_size,) * 2 if spec.input_size else size
        side = _fitting_side(spec.backbone, height, width)
        hint = "" if height == width == side else f"; input_size={side} of the model may help"
        raise BenchError(
            f"backbone '{spec.backbone}': does not fit images of {height} x {width}{hint}: "
            f"{one_line(error)}"
        ) from error


def try_on(model: nn.Module, images: Tensor) -> None:
    """Embed some images in vain, as in training; state and random stream stay as they were."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        model(images)
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])


def _fitting_side(backbone: str, height: int, width: int) -> int:
    """The side that a backbone is made for, as far as that is known; else that of a square."""
    library, _, name = backbone.partition(":")
    if library == "timm":
        from timm.models import get_pretrained_cfg

        usual = get_pretrained_cfg(name, allow_unregistered=True)
        return max(height, width) if usual is None else int(usual.input_size[-1])
    own = OWN_BACKBONE.fullmatch(backbone)
    of_faces = own is not None and own[1] is None
    return _OF_FACES if of_faces else max(height, width)
