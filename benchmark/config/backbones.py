"""Names of backbones: our own, those of libraries that we know, and those of other packages."""

import re
from collections.abc import Mapping
from functools import cache

from benchmark.config import entry_points
from benchmark.config.entry_points import Added, added, package_of
from benchmark.config.fingerprints import fingerprint

BACKBONES = (
    "convnet-, plain-, mobilenet- or vit-<width>[x<depth>], iresnet-18, -34, -50, -100 or -200, "
    "vit-t, -s or -b, timm:<name>, open_clip:<name>, torchvision:alexnet, text:<embedder> or one "
    "of another package"
)
OWN_BACKBONE = re.compile(
    r"(?:(convnet|plain|mobilenet|vit)-([1-9]\d{0,3})(?:x([1-9]\d{0,2}))?)"
    r"|(iresnet)-(18|34|50|100|200)|vit-([tsb])"
)
"""Family, width, and depth: blocks a stage, or layers of a transformer; or iResNet's depth; or the
size of a transformer for faces."""
# timm's own names are checked when timm is loaded, which takes seconds.
_BACKBONE = re.compile(
    f"{OWN_BACKBONE.pattern}|(?:timm|open_clip):[\\w.-]{{1,100}}|torchvision:alexnet"
    "|text:[a-z0-9][a-z0-9.-]{0,63}"
)


def is_own_backbone(name: str) -> bool:
    """Tell the names of backbones of our own and of libraries that we know."""
    return _BACKBONE.fullmatch(name) is not None


@cache
def added_backbones() -> Added:
    """Backbones of other packages, and what is broken among them."""
    return added(entry_points.BACKBONES, is_own_backbone)


def backbones() -> Mapping[str, str]:
    """Backbone of another package to the module that builds it.

    Its ``trunk(channels, image_size)`` gives the network, with the weights that it starts from, and
    the width of its output.
    """
    return {name: module for name, (module, _) in added_backbones().found.items()}


def backbone_version(name: str) -> str:
    """The package of another one's backbone and the hash of its module; empty for one of our own.

    It is a part of the name of all that is computed with it.
    """
    if name not in backbones():
        return ""
    module, path = added_backbones().found[name]
    return f"{package_of(module)}, sha256:{fingerprint(path.read_bytes())}"
