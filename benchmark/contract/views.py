"""The pairs of an update, from one or more augmented views of its training images."""

import dataclasses

import torch
from torch import Tensor

from benchmark.config.seeds import derive
from benchmark.contract.method import UpdateJob
from benchmark.contract.pairs import Pairs
from benchmark.models.module import Portable
from benchmark.models.texts import TextModel
from benchmark.training.embedding import embed_view


def job_pairs(job: UpdateJob) -> Pairs:
    """Cached embeddings of the training images by both models, as the recipe's views ask.

    FCT and FastFill embed each image, cropped and flipped anew, in every epoch, by the old, the
    new and the side-information model alike: that is ``transform_views: epoch``.
    """
    old, new = job.old, job.require_independent()
    views = len(old.features) // len(job.data)
    pairs = Pairs(
        old.features, new.features, job.data.labels.repeat(views), old.side, new.head,
        job.distance, new.side, old.head, chained=len(job.chain) > 1, views=views,
    )  # fmt: skip
    if job.trainer.recipe.transform_views != "epoch":
        return pairs
    return dataclasses.replace(pairs, renew=lambda epoch: _viewed(pairs, job, epoch))


def _viewed(pairs: Pairs, job: UpdateJob, epoch: int) -> Pairs:
    """The pairs of other views of the same images, in the same order."""
    old, new, trainer = job.old, job.require_independent(), job.trainer

    def view(model: Portable, cached: Tensor) -> Tensor:
        if isinstance(model, TextModel):
            return cached
        seed, device = derive(trainer.seed, "views"), trainer.torch_device()
        changes = trainer.recipe.augment
        return torch.from_numpy(embed_view(model, job.data.images, device, changes, seed, epoch))

    def side(model: Portable | None, cached: Tensor | None) -> Tensor | None:
        return cached if model is None or cached is None else view(model, cached)

    return dataclasses.replace(
        pairs, old=view(old.model, pairs.old), new=view(new.model, pairs.new),
        side=side(old.side_model, pairs.side), new_side=side(new.side_model, pairs.new_side),
        renew=None,
    )  # fmt: skip
