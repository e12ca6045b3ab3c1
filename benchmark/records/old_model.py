"""The first generation that methods share, as records name it: by the hash of its weights."""

from benchmark.records.record import Record

MODEL, TEXT_MODELS = "model", "text and image models"
"""Kind of a generation, in titles of stages."""


def first_title(generation: str, seed: int, models: str = MODEL) -> str:
    """Title of the stage that trains a shared first generation, by which checkpoints name it."""
    return f"train {generation} {models} (seed {seed})"


def old_model(record: Record) -> str | None:
    """Hash of the shared first generation's weights; ``None`` where a record does not say it.

    Of a method that trains the first generation its own way it is the shared one, too, which its
    bounds stand on.
    """
    first = next(iter(record.models))
    titles = (first_title(first, record.first_seed, models) for models in (MODEL, TEXT_MODELS))
    return next((record.checkpoints[t] for t in titles if t in record.checkpoints), None)
