"""Facts of a record in words: provenance, cost, parameters, models, data, environment."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import from_json, to_json

from benchmark.records.record import Record

Pair = tuple[str, str]
Section = tuple[str, tuple[Pair, ...]]
# A text longer than this is cut; the file has all of it.
_LONGEST = 2000
WORDS = {
    "lr": "learning rate", "dim": "dimensions of the embedding",
    "fingerprint": "fingerprint (SHA-256)", "n_train": "training images",
    "n_test": "evaluation images", "n_classes": "classes", "facts": "the data set says",
    "head": "classifier", "relu": "ReLU on the embedding",
    "triplet": "weight of the triplet loss", "per_class": "images of a class in a batch",
    "transform_steps": "steps of training a map", "transform_batch": "batch of training a map",
    "transform_views": "views of an image for a map", "side_epochs": "epochs of side-information",
    "augment": "augmentation", "batch_size": "batch",
    "warmup": "share of warm-up", "schedule": "schedule of the rate",
    "parameters": "parameters of the new model", "added_parameters": "parameters beside it",
    "multiply_adds": "multiply-adds of embedding an image",
    "old_multiply_adds": "multiply-adds of embedding an image, old model",
    "convert_multiply_adds": "multiply-adds of converting an item",
    "query_multiply_adds": "multiply-adds added to a query",
    "bytes_before": "bytes of an item before the update",
    "bytes_after": "bytes of an item after it",
    "bytes_new": "bytes of an item embedded by the new model", "far": "false accept rates",
    "fpir": "false positive identification rates", "old_head": "the old classifier is",
    "split_seed": "seed of the split", "upper": "upper bound",
    "image_order": "order of a class's images", "order": "order of the classes",
    "orders": "orders of backfilling", "apart": "generations share no image",
    "direct": "also converted in one step", "set": "changes to the track",
    "evaluation": "evaluated on", "part": "part of the data", "ranges": "ranges of classes",
    "against": "group against all others", "thinned": "thinned groups",
    "other_domain": "another domain", "train_classes": "classes of training",
    "draws": "drawings of each character", "cameras": "faces of the font",
    "side": "side-information", "uncertainty": "learns its uncertainty",
    "width": "width of the map", "lam": "lambda", "source": "hash of the code", "module": "file",
    "cka": "linear CKA", "dataset": "data set", "simclr": "SimCLR", "grey": "share of grey views",
    "flip": "mirrored views", "cpu": "processor", "queries": "queries are",
}  # fmt: skip
"""Part of a key -> words; others say it themselves."""


def words(key: str) -> str:
    """A key of nested fields in words, the inner ones behind commas.

    Example:
        >>> words("new.recipe.lr"), words("augment.rotate"), words("bytes_after")
        ('new, recipe, learning rate', 'augmentation, rotate', 'bytes of an item after it')
    """
    return ", ".join(WORDS.get(part, part.replace("_", " ")) for part in key.split("."))


def sections(record: Record) -> Iterator[Section]:
    """Everything that a record says beside its scores, part by part; provenance has no title."""
    yield "", _provenance(record)
    omitted = record.backfilling and record.backfilling.omitted
    parts = {
        "Cost": to_json(record.cost, by_alias=True, exclude_none=True),
        "Parameters of the method": to_json(record.config),
        "Changed settings": to_json(record.changed),
        "Protocol and track": to_json(record.parameters, by_alias=True),
        "Models": to_json(record.models, by_alias=True),
        "Recipe": to_json(record.recipe, by_alias=True),
        "Dataset": to_json(record.dataset, by_alias=True),
        "Side-information": to_json(record.side, by_alias=True),
        "Left out of backfilling": to_json(omitted),
        "Adapter": to_json(record.adapter, by_alias=True),
        "Weights": to_json(record.checkpoints),
        "Environment": to_json(record.environment),
    }
    for title, part in parts.items():
        yield title, _lines(part)


# Recipes, models and environments are the same in hundreds of records.
@lru_cache(maxsize=4096)
def _lines(part: bytes) -> tuple[Pair, ...]:
    return tuple(_flat(from_json(part), ""))


def _flat(value: Any, name: str) -> Iterator[Pair]:
    """Nested mappings as lines: ``augment.rotate``."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif name:
        yield words(name), _text(value)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else f"{value:g}"
    if isinstance(value, str):
        text = value
    elif isinstance(value, list | tuple) and not any(isinstance(v, Mapping | list) for v in value):
        text = ", ".join(map(_text, value))
    else:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _provenance(record: Record) -> tuple[Pair, ...]:
    """Date, code and time."""
    run, code = record.run, record.run.code
    argv = " ".join(run.argv)
    seconds = sum(stage.seconds or 0.0 for stage in run.stages.values())
    pairs = {
        "finished": run.finished or "unknown",
        "code": f"{code.version or 'unknown'} {(code.commit or '')[:12]}".strip(),
        "unchanged code": "unknown" if code.dirty is None else _text(not code.dirty),
        "seconds, with shared stages": f"{seconds:.0f}",
        "as it was called": f"bench {argv}" if argv else "",
        "protocol and track version": f"{record.protocol_version}, {record.track_version}",
        "schema": str(record.schema_version),
        "seal": record.seal or "none",
        "key": record.key,
        "seed of the first generation": str(record.first_seed),
    }
    return tuple((key, value) for key, value in pairs.items() if value)
