"""A first generation with text queries: a text encoder and an image encoder, trained as one.

Source: Radford et al., Learning Transferable Visual Models From Natural Language Supervision (CLIP,
2021), which is the old model of BT2 section 4.7.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmark.config.embedders import load_embedder
from benchmark.config.recipes import ModelSpec
from benchmark.config.seeds import drawing_from
from benchmark.models.frozen import FrozenTexts
from benchmark.models.heads import Head
from benchmark.models.module import Portable
from benchmark.models.texts import TextEncoder, TextModel, embed_texts
from benchmark.models.weights import load_weights, read_weights, weights_file
from benchmark.training.data import TrainingData
from benchmark.training.embedding import Batch, new_model, train_embedding
from benchmark.training.loop import Curve, Trainer
from benchmark.training.prototypes import class_directions

_TEMPERATURE, _MOST = 0.07, 100.0
"""CLIP section 2.5: where the logit scale begins, and what it may not pass."""


class _Texts(nn.Module):
    def __init__(self, encoder: TextModel, scale: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))

    @property
    def scale(self) -> Tensor:
        return self.log_scale.exp().clamp(max=_MOST)


def contrastive(images: Tensor, texts: Tensor, labels: Tensor, scale: Tensor) -> Tensor:
    """CLIP's loss: each image finds its text among the batch's, and each text its images.

    Images of one text are all right for it: they share the probability evenly. Embeddings are
    ``[n, d]``, ``labels`` the number of each text, ``[n]``; the mean of both cross-entropies.
    """
    logits = scale * F.normalize(images) @ F.normalize(texts).T
    same = (labels[:, None] == labels[None]).to(logits.dtype)
    target = same / same.sum(1, keepdim=True)
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


def train_pair(
    spec: ModelSpec, data: TrainingData, names: Sequence[str], trainer: Trainer
) -> tuple[TextModel, Portable, Head, Curve]:
    """Train both encoders in the recipe's budget: of texts, and of images with ``spec``.

    Gives them, CLIP's zero-shot classifier, and the curve. ``names`` are those of all classes of
    the dataset; an image's text is its caption, or where it has none its class's name. A row of
    the classifier is the embedding of the name, or the mean direction of the class's captions: of
    names an encoder knows nothing that was trained on captions. CLIP's own towers come with each
    other; of a recipe without epochs they are taken as they are.
    """
    encoder, _ = new_model(spec, data, trainer)
    with drawing_from(trainer.seed, "texts"):
        texts, scale = _text_model(spec)
    classes = data.classes.tolist()
    of_class = [names[c] for c in classes]
    if isinstance(texts, FrozenTexts):
        texts.embed_once([*of_class, *(data.texts or ())])
    side = _Texts(texts, scale)
    curve = Curve()
    if trainer.recipe.epochs:
        # The zero-shot classifier exists only afterwards; until then one stands in for the loop.
        unused = Head("norm-softmax", spec.dim, classes).requires_grad_(False)

        def loss(batch: Batch, _: Head, state: _Texts) -> Tensor:
            if data.texts is None:
                chosen, number = [of_class[i] for i in batch.labels.tolist()], batch.labels
            else:
                chosen = [data.texts[i] for i in batch.index.tolist()]
                places = {text: i for i, text in enumerate(chosen)}
                number = torch.tensor([places[text] for text in chosen], device=batch.labels.device)
            return contrastive(batch.new, state.encoder(chosen).float(), number, state.scale)

        curve = train_embedding(encoder, unused, data, trainer, loss=loss, state=side, spec=spec)
    head = Head("norm-softmax", spec.dim, classes, side.scale.item())
    with torch.no_grad():
        embedded = embed_texts(texts, data.texts or of_class, trainer.torch_device())
        if data.texts is not None:
            embedded = class_directions(embedded, data.labels, len(classes))
        head.weight.copy_(embedded)
    return texts.cpu(), encoder, head, curve


def _text_model(spec: ModelSpec) -> tuple[TextModel, float]:
    """The text encoder that goes with a model of images, and its logit scale."""
    library, _, name = spec.backbone.partition(":")
    if spec.texts:
        return FrozenTexts(spec.texts, load_embedder(spec.texts).dim, spec.dim), 1 / _TEMPERATURE
    if library != "open_clip" or spec.frozen:
        return TextEncoder(spec.dim), 1 / _TEMPERATURE
    from benchmark.models.clip import ClipTexts

    texts, scale = ClipTexts(name), 1 / _TEMPERATURE
    if spec.weights is not None:
        path = weights_file(spec)
        load_weights(texts.text, spec, path, "text")
        learned = read_weights(path).get("logit_scale")
        scale = scale if learned is None else learned.exp().item()
    return texts, scale
