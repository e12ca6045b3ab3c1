"""Trainings that diverged: told by their curves, and by their classifiers on training images."""

from collections.abc import Mapping
from typing import Any

_RISE = 0.05
"""Share of the first epoch's loss by which the last one's may be above it."""
_ABOVE = 1.5
"""Times the loss of a guess. Short trainings of normalised heads end near it, with embeddings that
retrieve well: their classifiers are late."""
_LEARNED = 0.85
"""Share of the loss with random labels below which a normalised classifier knows its classes, late
as it may be."""


def divergence(facts: Mapping[str, Any]) -> str:
    """Reason that a training is no good; empty where none is seen.

    Args:
        facts: Of its stage: ``curves`` by name, each with the ``loss`` of every epoch, and ``fit``,
            the classifier's ``loss`` on training images, that of a guess, ``chance``, and of a
            normalised classifier that with ``random_labels``.

    Example:
        >>> divergence({"curves": {"model": {"loss": [2.0, 1.0]}}})
        ''
        >>> divergence({"curves": {"model": {"loss": [2.0, 3.0]}}})
        'its loss rises from 2 to 3'
        >>> divergence({"fit": {"loss": 9.5, "chance": 2.302585}})
        "its classifier's loss on training images is 9.5, a guess's 2.3"
    """
    fit = facts.get("fit") or {}
    if "chance" in fit and (fit["loss"] is None or fit["loss"] > _least(fit)):
        found = "no number" if fit["loss"] is None else f"{fit['loss']:.3g}"
        return f"its classifier's loss on training images is {found}, a guess's {fit['chance']:.2g}"
    for name, curve in facts.get("curves", {}).items():
        losses = curve["loss"]
        if len(losses) > 1 and losses[-1] > losses[0] + _RISE * abs(losses[0]):
            of = "its loss" if name == "model" else f"the loss of its {name}"
            return f"{of} rises from {losses[0]:.3g} to {losses[-1]:.3g}"
    return ""


def _least(fit: Mapping[str, Any]) -> float:
    """Loss on training images above which nothing was learned."""
    return max(_ABOVE * fit["chance"], _LEARNED * fit.get("random_labels", 0.0))
