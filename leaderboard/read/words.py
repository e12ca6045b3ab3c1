"""Keys of records in words, for readers who have not read the code."""

from typing import Any

WORDS = {
    "lr": "learning rate", "dim": "dimensions of the embedding",
    "fingerprint": "fingerprint (SHA-256)", "n_train": "training images",
    "n_test": "evaluation images", "n_classes": "classes", "facts": "the data set says",
    "scale": "scale", "head": "classifier", "relu": "ReLU on the embedding",
    "triplet": "weight of the triplet loss", "per_class": "images of a class in a batch",
    "recipe": "recipe", "transform_steps": "steps of training a map",
    "transform_batch": "batch of training a map",
    "transform_views": "views of an image for a map", "side_epochs": "epochs of side-information",
    "augment": "augmentation", "batch_size": "batch", "weight_decay": "weight decay",
    "warmup": "share of warm-up", "label_smoothing": "label smoothing", "momentum": "momentum",
    "schedule": "schedule of the rate", "optimizer": "optimizer", "precision": "precision",
    "epochs": "epochs", "parameters": "parameters of the new model",
    "added_parameters": "parameters beside it",
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
    "direct": "also converted in one step", "tasks": "tasks", "set": "changes to the track",
    "evaluation": "evaluated on", "part": "part of the data", "ranges": "ranges of classes",
    "against": "group against all others", "groups": "groups", "classes": "classes",
    "thinned": "thinned groups", "images": "images", "generations": "generations",
    "other_domain": "another domain", "train_classes": "classes of training",
    "draws": "drawings of each character", "cameras": "faces of the font",
    "side": "side-information", "uncertainty": "learns its uncertainty", "losses": "losses",
    "width": "width of the map", "lam": "lambda", "source": "hash of the code", "module": "file",
    "package": "package", "cka": "linear CKA", "distance": "distance", "dataset": "data set",
    "simclr": "SimCLR", "hue": "hue", "grey": "share of grey views", "flip": "mirrored views",
    "cpu": "processor", "settings": "settings", "queries": "queries are",
}  # fmt: skip
"""Last part of a key -> words."""


def words(key: str) -> str:
    """A key of nested fields in words, the inner ones behind commas.

    Example:
        >>> words("new.recipe.lr"), words("augment.rotate"), words("bytes_after")
        ('new, recipe, learning rate', 'augmentation, rotate', 'bytes of an item after it')
    """
    return ", ".join(WORDS.get(part, part.replace("_", " ")) for part in key.split("."))


_SETTINGS = {
    ("unknown", "old"): "influence only on classes that the old classifier knows",
    ("unknown", "distill"): "distillation for classes that the old classifier does not know",
    ("unknown", "synthesize"): "mean old features of classes that the old classifier does not know",
    ("direction", "query"): "queries mapped, the gallery left as it is",
    ("direction", "gallery"): "the gallery mapped, queries left as they are",
    ("losses", "l2"): "the squared distance as its only loss",
    ("losses", "disc"): "the new classifier's loss alone",
    ("uncertainty", False): "no uncertainty learned",
}
"""Parameter and value -> words, where those of the parameter alone say nothing."""


def setting_words(key: str, value: Any) -> str:
    """A parameter with its value in words, as they stand behind "with".

    Example:
        >>> setting_words("unknown", "distill"), setting_words("pairs", 100)
        ('distillation for classes that the old classifier does not know', 'pairs 100')
    """
    if isinstance(value, str | bool) and (key, value) in _SETTINGS:
        return _SETTINGS[key, value]
    return f"{words(key)} {'on' if value is True else 'off' if value is False else value}"
