"""A first generation with text queries: a text encoder and an image encoder, trained as one.

Source: Radford et al., Learning Transferable Visual Models From Natural Language Supervision (CLIP,
2021), which is the old model of BT2 section 4.7.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.recipes import ModelSpec
from benchmark.config.seeds import drawing_from
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.models.texts import TextEncoder
from benchmark.training.data import TrainingData
from benchmark.training.embedding import Batch, new_model, train_embedding
from benchmark.training.loop import Curve, Trainer

_TEMPERATURE, _MOST = 0.07, 100.0
"""CLIP section 2.5: where the logit scale begins, and what it may not pass."""


class _Texts(nn.Module):
    def __init__(self, encoder: TextEncoder, names: Sequence[str]) -> None:
        super().__init__()
        self.encoder, self.names = encoder, names
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / _TEMPERATURE)))

    @property
    def scale(self) -> Tensor:
        return self.log_scale.exp().clamp(max=_MOST)


def contrastive(images: Tensor, texts: Tensor, labels: Tensor, scale: Tensor) -> Tensor:
    """CLIP's loss: each image finds its text among the batch's, and each text its images.

    Images of one class have the same text, so all of them are right: they share the probability
    evenly. Embeddings are ``[n, d]``, labels ``[n]``; the mean of both cross-entropies.
    """
    logits = scale * F.normalize(images) @ F.normalize(texts).T
    same = (labels[:, None] == labels[None]).to(logits.dtype)
    target = same / same.sum(1, keepdim=True)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def train_pair(
    spec: ModelSpec, data: TrainingData, names: Sequence[str], trainer: Trainer
) -> tuple[TextEncoder, Portable, Head, Curve]:
    """Train both encoders in the recipe's budget: of texts, and of images with ``spec``.

    Gives them, CLIP's zero-shot classifier, whose rows are the names' embeddings, and the curve.
    ``names`` are those of all classes of the dataset.
    """
    encoder, _ = new_model(spec, data, trainer)
    with drawing_from(trainer.seed, "texts"):
        texts = TextEncoder(spec.dim)
    classes = data.classes.tolist()
    side = _Texts(texts, [names[c] for c in classes])
    # The zero-shot classifier exists only afterwards; until then one stands in for the loop.
    unused = Head("norm-softmax", spec.dim, classes).requires_grad_(False)

    def loss(batch: Batch, _: Head, state: _Texts) -> Tensor:
        embedded = state.encoder([state.names[i] for i in batch.labels.tolist()])
        return contrastive(batch.new, embedded.float(), batch.labels, state.scale)

    curve = train_embedding(encoder, unused, data, trainer, loss=loss, state=side, spec=spec)
    head = Head("norm-softmax", spec.dim, classes, side.scale.item())
    with torch.no_grad():
        head.weight.copy_(texts.cpu().eval()(side.names))
    return texts, encoder, head, curve
