"""Names that a method may have."""

import keyword
import re

RESERVED = (
    "recipe", "recipe.augment", "recipe.simclr", "recipe.simclr.augment", "data", "track",
    "protocol", "evaluation",
)  # fmt: skip
"""Names that ``--set`` changes beside generations and methods."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40
_OF_GENERATIONS = re.compile(r"old|new|v[0-9]+")


def wrong_name(name: str) -> str:
    """Reason why no method has this name; empty for a good one."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        return (
            f"expected lower-case letters and digits, with hyphens between, at most {_LONGEST} "
            f"characters and no word of Python, got '{name:.60}'"
        )
    if name in RESERVED or _OF_GENERATIONS.fullmatch(name):
        return (
            "expected another name than those of generations and of what --set changes, "
            f"got '{name}'"
        )
    return ""
