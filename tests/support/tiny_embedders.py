"""Two embedders of texts, made by hand: tables of vectors of a few words."""

from importlib import metadata

import numpy as np
import yaml
from safetensors.numpy import save_file

from benchmark.config import embedders
from benchmark.config.files import sha256_of

WORDS = "[UNK] card pin fee late lost where my why a the no is it new old please".split()  # noqa: SIM905
DIM = 6


def tiny_embedders(tmp_path, monkeypatch):
    """The tables of ``tiny-old`` and ``tiny-new``, which lie as packages would have them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tables = {}
    for seed, name in enumerate(("tiny-old", "tiny-new")):
        tables[name] = np.random.default_rng(seed).standard_normal((len(WORDS), DIM), np.float32)
        save_file({"table": tables[name]}, tmp_path / f"{name}.safetensors")
        at = f"typer=={metadata.version('typer')}:"
        files = {
            key: {"at": [at + file], "sha256": sha256_of(tmp_path / file)}
            for key, file in (("weights", f"{name}.safetensors"), ("tokenizer", "tokenizer.json"))
        }
        facts = {
            "id": name, "title": name, "vintage": "2020-01", "modality": "text",
            "runner": "static", "files": files, "licence": "MIT", "parameters": 200, "speed": 1.0,
            "dim": DIM, "pooling": "mean",
        }  # fmt: skip
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(facts))
    monkeypatch.setattr(embedders, "FOLDER", tmp_path)
    monkeypatch.setattr(embedders, "_located", lambda place: tmp_path / place.rpartition(":")[2])
    return tables
