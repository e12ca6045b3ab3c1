"""A protocol and a track of one's own, as files."""

import json

OLD, NEW = {"name": "old", "classes": [0, 0.5]}, {"name": "new"}
MINE = {
    "id": "mine", "version": 1, "title": "Mine", "source": "s", "question": "q",
    "generations": [OLD, NEW], "tasks": ["retrieval"],
}  # fmt: skip


def write(folder, **changes):
    """Write it with some fields otherwise; gives its path."""
    path = folder / "mine.yaml"
    path.write_text(json.dumps({**MINE, **changes}))
    return str(path)


def write_track(folder, name="mine", **changes):
    """Write a track that is the toy one with some fields otherwise; gives its path."""
    path = folder / f"{name}.yaml"
    usual = {"id": name, "version": 1, "title": "T", "extends": "toy"}
    path.write_text(json.dumps({**usual, **changes}))
    return str(path)
