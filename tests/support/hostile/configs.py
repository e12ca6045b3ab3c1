"""Hostile protocols, tracks, values of ``--set`` and the like, and published numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.hostile import TOKEN, Sample, in_place
from support.hostile.engine import TEXTS, WRONG, Form, named, other_bytes, other_values, spread

ROOT = Path(__file__).parents[3]
TOKENS = {
    "date-that-is-none": "2024-13-45", "time-that-is-none": "2024-01-01 99:99:99",
    "int-of-letters": "!!int abc", "float-of-letters": "!!float abc",
    "bool-of-letters": "!!bool maybe", "binary-of-nonsense": '!!binary "!!!"',
    "timestamp-of-letters": "!!timestamp abc", "null-of-letters": "!!null abc",
    "set-of-a-list": "!!set [1]", "omap-of-text": "!!omap x", "pairs-of-text": "!!pairs x",
    "python-apply": f"!!python/object/apply:os.system ['touch {TOKEN}']",
    "python-new": "!!python/object/new:planted.Planted {}",
    "python-name": "!!python/name:planted.Planted", "python-module": "!!python/module:planted",
    "unknown-tag": "!evil x", "unknown-handle": "!e!x y", "value": "=", "merge": "<<",
    "sexagesimal": "1:30:00", "octal": "0777", "hexadecimal": "0x" + "f" * 5000,
    "binary-digits": "0b" + "1" * 20_000, "more-digits": "1" * 300_000,
    "sexagesimal-of-length": "1" + ":59" * 3000, "underscores": "1" + "_" * 5000,
    "huge-exponent": "1e999999999", "infinity": ".inf", "nan": ".nan", "yes": "yes", "tilde": "~",
    "complex-key": "{[1, 2]: 3}", "mapping-as-key": "{{a: 1}: 3}", "question": "{? {? {? a}}}",
    "recursive-list": "&a [*a]", "recursive-mapping": "&a {x: *a}", "recursive-key": "&a {*a : 1}",
    "recursive-merge": "&a {<<: *a}", "merge-of-a-list": "{<<: [1, 2]}",
    "unknown-alias": "*nobody", "open-list": "[1, 2", "open-quote": '"abc', "tab": "\t x",
    "bad-escape": '"\\xZZ"', "escape": '"\\e[2J"', "surrogate": '"\\ud800"',
    "null-character": '"\\0"', "next-line": '"\\N\\_\\L\\P"', "two-documents": "1\n---\n2",
    "directive": "%YAML 9.9\n---\n1", "lists-50-deep": "[" * 50 + "]" * 50,
    "dashes-5000-deep": "- " * 5000 + "x",
    "laughs": "[&a0 [x,x], " + ", ".join(
        f"&a{i} [*a{i - 1},*a{i - 1}]" for i in range(1, 40)) + "]",
    "merge-bomb": "[&m0 {k: 1}, " + ", ".join(
        f"&m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, 12)) + "]",
    "100000-items": "[" + "1," * 100_000 + "]",
    "20000-anchors": "[" + ", ".join(f"&a{i} 1" for i in range(20_000)) + "]",
}  # fmt: skip
"""YAML that is valid or not, in the place of a value."""


def _dump(value: Any) -> bytes:
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
    return text.encode(errors="backslashreplace")


YAML = Form(lambda raw: yaml.load(raw, Loader=yaml.CSafeLoader), _dump)


def sound(path: str) -> bytes:
    """A protocol or track of ours under another name."""
    return _dump(yaml.safe_load((ROOT / "protocols" / path).read_text()) | {"id": "evil"})


def _yaml(kind: str, raw: bytes, n: int) -> Iterator[Sample]:
    """A sound file in all wrong ways, and in encodings that are none."""
    for name, made in (
        *other_values(raw, YAML, n, TOKENS), *other_bytes(raw, most=20),
        ("latin-1", raw.replace(b"title: ", b"title: \xe9\xff ")),
        ("utf-16", raw.decode().encode("utf-16")), ("byte-order-mark", b"\xef\xbb\xbf" + raw),
        ("key-twice", raw + b"version: 1\n"), ("two-documents", raw + b"---\n" + raw),
        ("another-id", raw.replace(b"id: evil", b"id: toy")),
        ("30-mib-of-comments", b"#" * 80 + b"\n# x" * (30 * 2**18) + b"\n" + raw),
    ):  # fmt: skip
        yield Sample(kind, name, {"evil.yaml": made})
    yield from in_place(kind, "evil.yaml")


def protocols() -> Iterator[Sample]:
    """Hostile protocols."""
    base = yaml.safe_load(sound("backfill.yaml"))
    base["orders"], base["tasks"] = ["random", "priority"], ["retrieval", "backfilling"]
    yield from _yaml("protocol", _dump(base | {"set": {"recipe.epochs": 1}}), 60)
    settings = [{"name": name, "set": {"old.dim": 8}} for name in ("a", "b")]
    for name, raw in other_values(_dump({"settings": settings}), YAML, 20):
        made = {"evil.yaml": _dump(base) + raw}
        yield Sample("protocol", f"settings-{name}", made)


def tracks() -> Iterator[Sample]:
    """Hostile tracks, and such as extend what they should not, or take more than there is."""
    base = yaml.safe_load(sound("tracks/toy.yaml"))
    base["recipe"] |= {"epochs": 1, "transform_steps": 5}
    yield from _yaml("track", _dump(base), 70)
    for i, path in enumerate(
        ("evil", "evil.yaml", "/etc/passwd", "../../evil.yaml", "nobody", "/dev/zero.yaml", "toy")
    ):
        made = {"id": "evil", "version": 1, "title": "t", "extends": path}
        yield Sample("track", f"extends-{i}", {"evil.yaml": _dump(made)})
    for i, backbone in enumerate(
        ("convnet-99999999", "vit-65536x4096", "convnet-4x1000000", "../../x", "timm:os.system",
         "convnet-" + "9" * 5000)
    ):  # fmt: skip
        models = base["models"] | {"new": base["models"]["new"] | {"backbone": backbone}}
        made = base | {"models": models}
        yield Sample("track", f"backbone-{i}", {"evil.yaml": _dump(made)})
    for i, dataset in enumerate(("planted", "../toy", "os", "base", "/dev/zero")):
        yield Sample("track", f"dataset-{i}", {"evil.yaml": _dump(base | {"dataset": dataset})})


KEYS = (
    "old.dim", "old.backbone", "recipe", "recipe.lr", "recipe.epochs", "recipe.batch_size", "far",
    "data.seed", "bct.weight", "tasks", "generations", "orders", "old.__class__", "planted", "",
    "old..dim", "track",
)  # fmt: skip
OPTIONS = (
    "seeds", "sweep", "methods", "device", "track", "protocol", "first-seed", "existing", "out",
    "store", "data-root", "set", f"{TOKEN}\x1b[2J",
)  # fmt: skip
PLACES = ("/dev/null", "/dev/null/x", "/proc/x", "/dev/zero.yaml", "1" * 5000, "bct," * 5000, "1-",
          "0-1000000000", "bct.weight=[1", "arch-change:x", "cuda:999999999999")  # fmt: skip


def settings() -> Iterator[Sample]:
    """Hostile words of the command line; the words ``run --dry-run`` stand before them."""
    run = ("run", "--dry-run", "-p", "open-class", "-t", "toy", "-m", "bct")
    words = [(f"set-{name}", f"--set=old.dim={token}") for name, token in TOKENS.items()]
    values = {name: json.dumps(wrong) for name, wrong in WRONG.items()}
    for i, key in enumerate(spread(KEYS, 3 * len(KEYS))):
        name, text = named(values, i)
        words.append((f"{key or 'nothing'}-is-{name}", f"--set={key}={text}"))
    texts = TEXTS | {f"place-{i}": place for i, place in enumerate(PLACES)}
    for i, option in enumerate(spread(OPTIONS, 2 * len(texts))):
        name, text = named(texts, i)
        words.append((f"{option[:9]}-is-{name}-{i}", f"--{option}={text}"))
    for name, word in words:
        if "\x00" not in word and len(word) < 120_000:  # the system takes no other words
            yield Sample("settings", name, words=(*run, word))


def _rows(raw: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(raw.decode())))


def _csv(rows: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(list(map(list, rows)))
    return out.getvalue().encode("utf-8", "surrogatepass")


CSV = Form(_rows, _csv)


def sound_published() -> dict[str, bytes]:
    """A few published numbers of one paper: the words and the table."""
    folder = ROOT / "results/published"
    words = yaml.safe_load((folder / "papers.yaml").read_text())
    paper = next(iter(words["papers"]))
    words["papers"] = {paper: words["papers"][paper]}
    rows = _rows((folder / f"{paper}.csv").read_bytes())[:4]
    return {"papers.yaml": _dump(words), f"{paper}.csv": _csv(rows)}


def published() -> Iterator[Sample]:
    """Hostile folders of published numbers."""
    files = sound_published()
    for path, form in zip(files, (YAML, CSV), strict=True):
        tokens = {"merge-bomb": TOKENS["merge-bomb"]} if form is YAML else None
        for name, made in (
            *other_values(files[path], form, 40, tokens), *other_bytes(files[path], most=15),
            ("20-mib", files[path] + b"\n" * (20 * 2**20)), ("null-bytes", b"\0" + files[path]),
        ):  # fmt: skip
            yield Sample("published", f"{path[:6]}-{name}", {**files, path: made})
    yield from in_place("published", path, {"papers.yaml": files["papers.yaml"]})
