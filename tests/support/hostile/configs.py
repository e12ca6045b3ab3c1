"""Hostile protocols, tracks, values of ``--set`` and the like, and published numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from support.hostile import TOKEN, Sample, in_place, values

ROOT = Path(__file__).parents[3]
PROTOCOL, TRACK = "evil.yaml", "evil.yaml"

TOKENS = {
    "date-that-is-none": "2024-13-45", "time-that-is-none": "2024-01-01 99:99:99",
    "int-of-letters": "!!int abc", "int-of-nothing": "!!int ''", "float-of-letters": "!!float abc",
    "bool-of-letters": "!!bool maybe", "binary-of-nonsense": '!!binary "!!!"',
    "timestamp-of-letters": "!!timestamp abc", "null-of-letters": "!!null abc",
    "set-of-a-list": "!!set [1]", "omap-of-text": "!!omap x", "pairs-of-text": "!!pairs x",
    "sequence-of-text": "!!seq x", "mapping-of-text": "!!map x", "value": "=", "merge": "<<",
    "python-apply": f"!!python/object/apply:os.system ['touch {TOKEN}']",
    "python-new": "!!python/object/new:planted.Planted {}",
    "python-name": "!!python/name:planted.Planted", "python-module": "!!python/module:planted",
    "python-tuple": "!!python/tuple [1, 2]", "unknown-tag": "!evil x", "unknown-handle": "!e!x y",
    "sexagesimal": "1:30:00", "octal": "0777", "hexadecimal": "0x" + "f" * 5000,
    "binary-digits": "0b" + "1" * 20_000, "digits": "9" * 5000, "more-digits": "1" * 300_000,
    "sexagesimal-of-length": "1" + ":59" * 3000, "underscores": "1" + "_" * 5000,
    "huge-exponent": "1e999999999", "infinity": ".inf", "minus-infinity": "-.inf", "nan": ".nan",
    "yes": "yes", "tilde": "~", "nothing": "", "complex-key": "{[1, 2]: 3}",
    "mapping-as-key": "{{a: 1}: 3}", "question": "{? {? {? a}}}", "recursive-list": "&a [*a]",
    "recursive-mapping": "&a {x: *a}", "recursive-key": "&a {*a : 1}",
    "recursive-merge": "&a {<<: *a}", "merge-of-a-list": "{<<: [1, 2]}",
    "unknown-alias": "*nobody", "open-list": "[1, 2", "open-quote": '"abc', "tab": "\t x",
    "bad-escape": '"\\xZZ"', "escape": '"\\e[2J"', "bell": '"\\a"', "surrogate": '"\\ud800"',
    "null-character": '"\\0"', "next-line": '"\\N\\_\\L\\P"', "two-documents": "1\n---\n2",
    "directive": "%YAML 9.9\n---\n1", "comment-only": "# nothing",
    "lists-50-deep": "[" * 50 + "]" * 50, "lists-1000-deep": "[" * 1000 + "]" * 1000,
    "lists-100000-deep": "[" * 100_000, "mappings-1000-deep": "{a: " * 1000 + "1" + "}" * 1000,
    "dashes-5000-deep": "- " * 5000 + "x",
    "laughs": "[&a0 [x,x], " + ", ".join(
        f"&a{i} [*a{i - 1},*a{i - 1}]" for i in range(1, 40)) + "]",
    "merge-bomb": "[&m0 {k: 1}, " + ", ".join(
        f"&m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, 12)) + "]",
    "merge-wide": "[&w {" + ", ".join(f"k{i}: {i}" for i in range(500)) + "}, {<<: ["
    + ", ".join(["*w"] * 2000) + "]}]",
    "100000-items": "[" + "1," * 100_000 + "]",
    "20000-keys": "{" + ", ".join(f"k{i}: 1" for i in range(20_000)) + "}",
    "20000-anchors": "[" + ", ".join(f"&a{i} 1" for i in range(20_000)) + "]",
}  # fmt: skip
"""YAML that is valid or not, in the place of a value."""


def _base(path: str) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load((ROOT / "protocols" / path).read_text())
    return value | {"id": "evil"}


def _dump(value: Any) -> bytes:
    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False).encode(
        errors="backslashreplace"
    )


def protocols() -> Iterator[Sample]:
    """Hostile protocols."""
    base = _base("backfill.yaml")
    base["orders"], base["tasks"] = ["random", "priority"], ["retrieval", "backfilling"]
    base["evaluation"] = {"part": "test", "classes": [0.0, 1.0]}
    base["set"] = {"recipe.epochs": 1}
    for name, content in _documents(base, "tasks", ("title", "source", "question")):
        yield Sample("protocol", name, {PROTOCOL: content})
    generation = {"name": "x", "classes": [0.0, 0.5]}
    for n in (40, 5000):
        many = [generation | {"name": f"v{i}"} for i in range(n)]
        yield Sample(
            "protocol", f"{n}-generations", {PROTOCOL: _dump(base | {"generations": many})}
        )
    for name, classes in (
        ("backwards", [0.5, 0.1]), ("beyond", [0.0, 7.0]), ("negative", [-1.0, 0.5]),
        ("a-billionth", [0.0, 1e-9]), ("one", [0.5]), ("three", [0.0, 0.5, 1.0]), ("none", []),
        ("text", ["0", "1"]), ("same", [0.5, 0.5]),
    ):  # fmt: skip
        made = copy.deepcopy(base)
        made["generations"][0]["classes"] = classes
        yield Sample("protocol", f"classes-{name}", {PROTOCOL: _dump(made)})
    for key in (
        "old.dim",
        "recipe.epochs",
        "recipe",
        "__class__",
        "far",
        "old",
        "",
        "a.b.c.d",
        "x" * 500,
    ):
        for name, wrong in values.rotating(values.WRONG, len(key), 2):
            made = base | {"set": {key: wrong}}
            label = f"set-{key[:20] or 'nothing'}-to-{name}"
            yield Sample("protocol", label, {PROTOCOL: _dump(made)})
    settings = [{"name": f"s{i}", "set": {"old.dim": 8}} for i in range(3000)]
    yield Sample("protocol", "3000-settings", {PROTOCOL: _dump(base | {"settings": settings})})
    for name in ("../evil", "evil\x1b[2J", f"<{TOKEN}>", "a" * 300, "-p"):
        made = copy.deepcopy(base)
        made["generations"][0]["name"] = name
        label = f"generation-called-{name[:20]!a}".replace("/", "|")
        yield Sample("protocol", label, {PROTOCOL: _dump(made)})
    yield from in_place("protocol", PROTOCOL)


def tracks() -> Iterator[Sample]:
    """Hostile tracks."""
    base = _base("tracks/toy.yaml")
    base["recipe"]["epochs"], base["recipe"]["transform_steps"] = 1, 5
    for name, content in _documents(base, "far", ("title", "note", "dataset")):
        yield Sample("track", name, {TRACK: content})
    for name, far in (
        ("two", [2]), ("nan", [float("nan")]), ("none", []), ("negative", [-0.1]), ("zero", [0.0]),
        ("one", [1.0]), ("twice", [0.1, 0.1]), ("tiny", [1e-300]), ("inf", [float("inf")]),
        ("thousands", [i / 1e5 for i in range(1, 3000)]), ("text", ["0.1"]), ("null", [None]),
        ("scalar", 0.1), ("mapping", {"a": 0.1}),
    ):  # fmt: skip
        for key in ("far", "fpir"):
            yield Sample("track", f"{key}-{name}", {TRACK: _dump(base | {key: far})})
    for name, extends in (
        ("itself", "evil"), ("its-file", "evil.yaml"), ("passwd", "/etc/passwd"),
        ("parent", "../../evil.yaml"), ("unknown", "nobody"), ("number", 7), ("list", ["toy"]),
        ("escape", "\x1b[2J"), ("device", "/dev/zero.yaml"), ("glyphs", "glyphs"),
    ):  # fmt: skip
        made = {"id": "evil", "version": 1, "title": "t", "extends": extends}
        yield Sample("track", f"extends-{name}", {TRACK: _dump(made)})
    for path, most in (
        (("models", "new", "backbone"), "convnet-99999999"), (("models", "new", "dim"), 10**9),
        (("models", "new", "backbone"), "vit-65536x4096"), (("models", "old", "dim"), 10**30),
        (("models", "new", "backbone"), "convnet-4x1000000"), (("recipe", "epochs"), 10**30),
        (("recipe", "batch_size"), 10**30), (("recipe", "lr"), 1e300), (("recipe", "lr"), 5e-324),
        (("models", "new", "backbone"), "../../x"),
        (("models", "new", "backbone"), "timm:os.system"),
        (("models", "new", "backbone"), "convnet-" + "9" * 5000),
        (("recipe", "transform_batch"), 10**18), (("recipe", "transform_steps"), 10**18),
        (("other_domain",), {"dataset": "toy", "classes": 10**12, "images": 10**12, "size": 10**6}),
        (("other_domain",), {"dataset": "planted"}), (("dataset",), "planted"),
        (("dataset",), "../toy"), (("dataset",), "os"), (("dataset",), "base"),
        (("data",), {"seed": 10**30}), (("data",), {"unknown": 1}), (("data",), {"__class__": 1}),
    ):  # fmt: skip
        label = f"{values.name(path)}-{str(most)[:24]!a}".replace("/", "|")
        yield Sample("track", label, {TRACK: _dump(values.replaced(base, path, most))})
    yield from in_place("track", TRACK)


def _documents(
    base: dict[str, Any], free: str, texts: tuple[str, ...]
) -> Iterator[tuple[str, bytes]]:
    """Documents of any kind: values of a wrong type, hostile texts, YAML's own traps."""
    for start, path in enumerate(values.paths(base)):
        for name, wrong in values.rotating(values.WRONG, start, 1):
            yield f"{values.name(path)}-is-{name}", _dump(values.replaced(base, path, wrong))
    for path in [(key,) for key in base]:
        yield f"{values.name(path)}-missing", _dump(values.removed(base, path))
    for start, (name, text) in enumerate(values.TEXTS.items()):
        key = texts[start % len(texts)]
        yield f"{key}-is-{name}", _dump(base | {key: text})
    rest = _dump({key: value for key, value in base.items() if key != free})
    for name, token in TOKENS.items():
        yield f"yaml-{name}", rest + f"{free}: {token}\n".encode("utf-8", "surrogatepass")
    whole = _dump(base)
    yield "latin-1", whole.replace(b"title: ", b"title: \xe9\xff ")
    yield "utf-16", whole.decode().encode("utf-16")
    yield "byte-order-mark", b"\xef\xbb\xbf" + whole
    yield "raw-escape", whole.replace(b"title: ", b"title: \x1b[2J")
    yield "null-inside", whole.replace(b"title: ", b"title: \x00")
    yield "key-twice", whole + b"version: 1\n"
    yield "unknown-key", whole + b"planted: 1\n"
    yield "key-with-escape", whole + b'"\\e[2J": 1\n'
    yield "key-of-markup", whole + f'"<script>{TOKEN}()</script>": 1\n'.encode()
    yield "cut", whole[: len(whole) // 2]
    yield "two-documents", whole + b"---\n" + whole
    yield "only-a-list", b"[1, 2]"
    yield "only-a-number", b"7"
    yield "another-id", whole.replace(b"id: evil", b"id: toy")
    yield "id-with-escape", whole.replace(b"id: evil", b'id: "\\e[2J"')
    yield "30-mib-of-comments", b"#" * 80 + b"\n# x" * (30 * 2**18) + b"\n" + whole
    yield "6-mib-of-list", b"x: [" + b"1," * (3 * 2**20) + b"]\n"


SETTINGS = (
    "", "=", "=1", "a", "a=b=c", "old.dim", "old.dim=", "old..dim=1", ".=1", "old.dim=8=9",
    "__class__=1", "old.__class__=1", "recipe=1", "recipe={}", "old=null", "far=[2]",
    "far=[.nan]", "far=[]", "far=[-1]", "far=0.1", "fpir=[2]", "fpir=[]", "recipe.lr=nan",
    "recipe.lr=.nan", "recipe.lr=.inf", "recipe.lr=-1", "recipe.lr=1e400", "recipe.epochs=0",
    "recipe.epochs=1.5", "recipe.epochs=true", "recipe.epochs=1e30", "recipe.batch_size=0",
    "recipe.batch_size=-5", "old.backbone=planted", "old.backbone=os:system", "old.dim=x0",
    "old.dim=x1e9", "old.dim=x-1", "old.dim=xnan", "bct.weight=.nan", "bct.weight=[1]",
    "bct.planted=1", "planted.weight=1", "data.seed=-1", "track=/dev/zero.yaml",
    "track=/dev/zero", "data={}", "generations=[]", "tasks=[]", "tasks=[planted]", "orders=[x]",
    "evaluation.part=planted", "\x1b[2J=1", "old.dim=\x1b[2J", "\u202eold.dim=1", "old.dim=\ud800",
    "old.dim=\U0010ffff", f"old.dim=<script>{TOKEN}()</script>", "x" * 100_000 + "=1",
    "old.dim=" + "9" * 100_000,
)  # fmt: skip


def settings() -> Iterator[Sample]:
    """Hostile words of the command line; the words ``run --dry-run`` stand before them."""
    run = ("run", "--dry-run", "-p", "open-class", "-t", "toy", "-m", "bct")
    for i, text in enumerate(SETTINGS):
        yield Sample("settings", f"{i}-{text[:30]!a}", words=(*run, f"--set={text}"))
    for name, token in TOKENS.items():
        if len(token) < 100_000:  # the system takes no longer word
            yield Sample("settings", f"yaml-{name}", words=(*run, f"--set=old.dim={token}"))
    for option, texts in {
        "--seeds": ("0-1000000000", "9" * 5000, "1-", "-1", "a", "", "0,,1", "5-1", "1e9", "\x1b"),
        "--sweep": ("", "=", "a=", "bct.weight=", "bct.weight=" + "1," * 5000, "bct.weight=[1",
                    "track=\x1b[2J,toy", "old.dim=!!int abc", "a=1", "=1,2"),
        "--methods": ("", ",", "\x1b[2J", "bct:", ":", "bct::", "../bct", "planted", "os", "-",
                      "bct," * 5000, "__init__", "bct:distill:x", "\ud800", f"<{TOKEN}>"),
        "--device": ("", "\x1b[2J", "cuda:999999999999", "cpu:-1", "planted", "cuda:"),
        "--track": ("", ".yaml", "/.yaml", "\x1b[2J", "\x1b[2J.yaml", "../toy", "x" * 5000,
                    "/etc/passwd", "\ud800.yaml", "/proc/self/environ.yaml"),
        "--protocol": ("", ":", "open-class:", "arch-change:\x1b[2J", "arch-change:x", "..",
                       "x" * 5000 + ".yaml", "a\x00b"),
        "--first-seed": ("-1", "9" * 5000, "x", "1e3"), "--existing": ("x", ""),
        "--out": ("/dev/null", "/dev/null/x", "/proc/x", "x" * 300, ""),
        "--store": ("/dev/null", "/dev/null/x", "/proc/x", "x" * 300, ""),
        "--data-root": ("/dev/null", "/nonexistent", "\x1b[2J", ""),
        f"--{TOKEN}\x1b[2J": ("x",),
    }.items():  # fmt: skip
        for i, text in enumerate(texts):
            if "\x00" in text:
                continue  # no system passes it on
            words = (*run, f"{option}={text}")
            yield Sample("settings", f"{option[2:9]}-{i}-{text[:20]!a}", words=words)


NUMBERS = "results/published"


def published() -> Iterator[Sample]:
    """Hostile folders of published numbers."""
    folder = ROOT / NUMBERS
    words = yaml.safe_load((folder / "papers.yaml").read_text())
    paper = next(iter(words["papers"]))
    words["papers"] = {paper: words["papers"][paper]}
    lines = (folder / f"{paper}.csv").read_text().splitlines()[:4]
    head, row = lines[0].split(","), lines[1]
    sound, csv = _dump(words), "\n".join(lines).encode() + b"\n"

    def sample(name: str, yaml_file: bytes = sound, table: bytes = csv) -> Sample:
        return Sample("published", name, {"papers.yaml": yaml_file, f"{paper}.csv": table})

    yield sample("sound")
    yield from in_place("published", f"{paper}.csv", {"papers.yaml": sound})
    for start, (name, text) in enumerate(values.TEXTS.items()):
        made = values.replaced(words, ("papers", paper, "title"), text)
        yield sample(f"title-is-{name}", _dump(made))
        cells = row.split(",")
        quoted = '"' + text.replace('"', '""') + '"'
        cells[start % len(head)] = quoted
        table = f"{lines[0]}\n{','.join(cells)}\n".encode("utf-8", "surrogatepass")
        yield sample(f"{head[start % len(head)]}-is-{name}", table=table)
    for start, path in enumerate([p for p in values.paths(words) if len(p) < 4][:40]):
        for name, wrong in values.rotating(values.WRONG, start, 1):
            made = values.replaced(words, path, wrong)
            yield sample(f"papers-{values.name(path)[:60]}-is-{name}", _dump(made))
    value = head.index("value") if "value" in head else 11
    for name, text in (
        ("digits", "9" * 10_000), ("nan", "nan"), ("infinity", "inf"), ("exponent", "1e5"),
        ("negative", "-5"), ("dot", "."), ("arabic", "٣"), ("plus", "+7"), ("spaces", " 7 "),
    ):  # fmt: skip
        cells = row.split(",")
        cells[value] = text
        yield sample(f"value-{name}", table=f"{lines[0]}\n{','.join(cells)}\n".encode())
    yield sample("no-head", table=b"")
    yield sample("short-row", table=csv + b"a,b\n")
    yield sample("row-twice", table=csv + row.encode() + b"\n")
    yield sample("open-quote", table=csv + b'"abc')
    yield sample("field-of-a-mib", table=csv + b"a" * 2**20 + b"\n")
    yield sample("null-bytes-inside", table=csv.replace(b",", b"\x00,", 1))
    yield sample("latin-1-inside", table=csv + b"\xe9\xff\n")
    yield sample("20-mib", table=csv + b"\n" * (20 * 2**20))
    yield sample("yaml-bomb", f"papers: {TOKENS['merge-bomb']}\n".encode())
    yield sample("yaml-deep", b"papers: " + b"[" * 100_000)
    yield Sample(
        "published", "paper-outside", {"papers.yaml": sound.replace(paper.encode(), b'"../x"')}
    )
