"""Another old model as side-information: it differs by its seed, or also by mixed images.

Source: FCT section 5.1 (alternate old model, with and without mixup); Zhang et al., mixup (2018).
"""

import torch
from torch import Tensor, nn

from benchmark.config.recipes import ModelSpec
from benchmark.models.module import Portable
from benchmark.training.data import TrainingData
from benchmark.training.embedding import new_model, train_embedding
from benchmark.training.loop import Curve, Trainer


def mix(images: Tensor, other: Tensor, share: float) -> Tensor:
    """``share`` of each image ``[n, c, h, w]`` and the rest of that in row ``other`` ``[n]``."""
    mixed = share * images + (1.0 - share) * images[other]
    return mixed.contiguous(memory_format=torch.channels_last)


class _Mixing(nn.Module):
    """The encoder behind mixup of its training images.

    FCT mixes images only and leaves labels one-hot, so each mixture is labelled by one of its two
    images; here by the one with the larger share, of which the label can still be told.
    """

    def __init__(self, encoder: nn.Module, strength: float) -> None:
        super().__init__()
        self.encoder, self.strength = encoder, strength

    def forward(self, images: Tensor) -> Tensor:
        if self.training:
            # On the CPU, as all draws: the loop seeds the global stream before each epoch.
            share = float(torch.distributions.Beta(self.strength, self.strength).sample())
            other = torch.randperm(len(images)).to(images.device)
            images = mix(images, other, max(share, 1.0 - share))
        return self.encoder(images)


def train(
    spec: ModelSpec, data: TrainingData, trainer: Trainer, *, mixup: float = 0.0
) -> tuple[Portable, Curve]:
    """Train the generation's embedding model once more, by a trainer with another seed.

    ``mixup`` is both parameters of the Beta distribution of the shares; 0 mixes nothing. FCT names
    no value: 0.2 is that of mixup on ImageNet.
    """
    encoder, head = new_model(spec, data, trainer)
    model = _Mixing(encoder, mixup) if mixup else encoder
    return encoder, train_embedding(model, head, data, trainer, spec=spec, name="side")
