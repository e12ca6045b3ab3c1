"""Runners of embedders: texts or images in, vectors out, on one thread of the processor.

Texts are sorted by length, so that a batch holds little padding.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.embedders import EXTRA, Embedder
from benchmark.errors import BenchError
from benchmark.ranking.arrays import Floats

Tokens = NDArray[np.int64]
Network = Callable[[Tokens, Tokens], Floats]
"""Ids and mask ``[b, t]`` -> vectors of tokens ``[b, t, d]``, or of texts ``[b, d]``."""
Tell = Callable[[int, int], None]
"""Called with what is done, and with how much there is."""
_TOKENS = 1024
"""Of a batch, with its padding."""
_IMAGES = 16
"""Of a batch."""


class TextEmbedder:
    """A text embedder, loaded once: called with texts it gives their vectors."""

    def __init__(self, embedder: Embedder) -> None:
        paths = embedder.paths()
        self.embedder = embedder
        self.tokenizer = _tokenizer(paths["tokenizer"], embedder.longest)
        self.network = _NETWORKS[embedder.runner](embedder, paths)
        self.tokens = self.texts = 0  # embedded so far, without what fills batches

    def __call__(
        self, texts: Sequence[str], *, queries: bool, tell: Tell = lambda a, b: None
    ) -> Floats:  # fmt: skip
        """Embed texts, as queries or as passages: ``[n, dim]``, float32."""
        its = self.embedder
        prefix = its.query_prefix if queries else its.passage_prefix
        special = its.runner != "static"
        encoded = self.tokenizer.encode_batch(
            [prefix + t for t in texts], add_special_tokens=special
        )
        ids = [np.asarray(each.ids, np.int64) for each in encoded]
        out = np.zeros((len(texts), its.dim), np.float32)
        done = 0
        for rows in _batches([len(each) for each in ids]):
            longest = max(1, *(len(ids[row]) for row in rows), 0)
            tokens, mask = (np.zeros((len(rows), longest), np.int64) for _ in range(2))
            for place, row in enumerate(rows):
                tokens[place, : len(ids[row])], mask[place, : len(ids[row])] = ids[row], 1
            out[rows] = _pooled(self.network(tokens, mask), mask, its.pooling)[:, : its.dim]
            self.tokens, self.texts = self.tokens + int(mask.sum()), self.texts + len(rows)
            done += len(rows)
            tell(done, len(texts))
        return _finished(its, out)

    @property
    def multiply_adds(self) -> int:
        """Of a text as long as those so far: each weight once a token, but the table's.

        What attention adds for the length of a text is left out: below a tenth in 100 tokens.
        """
        table = self.tokenizer.get_vocab_size() * self.embedder.dim
        work = max(0, self.embedder.parameters - table) * self.tokens
        return round(work / max(1, self.texts))


def embed_texts(
    embedder: Embedder, texts: Sequence[str], *, queries: bool, tell: Tell = lambda a, b: None
) -> Floats:  # fmt: skip
    """Embed texts, as queries or as passages: ``[n, dim]``, float32."""
    return TextEmbedder(embedder)(texts, queries=queries, tell=tell)


def embed_images(
    embedder: Embedder, images: Sequence[Any], tell: Tell = lambda a, b: None
) -> Floats:  # fmt: skip
    """Embed images, files or arrays ``[h, w, 3]`` of bytes: ``[n, dim]``, float32."""
    import timm
    import torch
    from PIL import Image

    from benchmark.models.weights import read_renamed

    torch.set_num_threads(1)
    paths = embedder.paths()
    model: Any = timm.create_model(embedder.architecture, pretrained=False).eval()
    model.load_state_dict(read_renamed(paths["weights"], embedder.architecture))
    model.reset_classifier(0)
    data: Any = timm.data
    size = {"input_size": (3, embedder.size, embedder.size)}
    transform = data.create_transform(**data.resolve_data_config(size, model=model))

    def read(image: Any) -> Any:
        is_file = isinstance(image, str | Path)
        picture = Image.open(image) if is_file else Image.fromarray(np.asarray(image))
        return transform(picture.convert("RGB"))

    found = []
    with torch.inference_mode():
        for start in range(0, len(images), _IMAGES):
            batch = torch.stack([read(each) for each in images[start : start + _IMAGES]])
            found.append(model(batch).numpy()[:, : embedder.dim])
            tell(min(start + _IMAGES, len(images)), len(images))
    return _finished(embedder, np.concatenate(found).astype(np.float32))


def _finished(embedder: Embedder, vectors: Floats) -> Floats:
    if not np.isfinite(vectors).all():
        raise BenchError(f"embedder {embedder.id}: a vector is not finite")
    if embedder.normalised:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows by length, at most so many tokens at a time; the longest first, so that memory shows."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda k: (-lengths[k], k)):
        if batch and (len(batch) + 1) * lengths[batch[0]] > _TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _pooled(found: Floats, mask: Tokens, pooling: str) -> Floats:
    if pooling == "mean":
        total = (found * mask[:, :, None]).sum(1)
        return np.asarray(total / np.maximum(mask.sum(1), 1)[:, None], np.float32)
    return found[:, 0] if pooling == "cls" else found


def _needed(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BenchError(
            f"{module} is not installed: pip install 'compatbench[{EXTRA}]'"
        ) from error


def _tokenizer(path: Path, longest: int) -> Any:
    tokenizer = _needed("tokenizers").Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    if longest:
        tokenizer.enable_truncation(longest)
    else:
        tokenizer.no_truncation()
    return tokenizer


def _static(embedder: Embedder, paths: dict[str, Path]) -> Network:
    """A table of vectors of tokens."""
    from safetensors.numpy import load_file

    (table,) = load_file(paths["weights"]).values()
    rows = table[:, : embedder.dim].astype(np.float32)
    return lambda ids, mask: rows[np.minimum(ids, len(rows) - 1)]


def _onnx(embedder: Embedder, paths: dict[str, Path]) -> Network:
    runtime = _needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        str(paths["weights"]), options, providers=["CPUExecutionProvider"]
    )
    names = {each.name for each in session.get_inputs()}
    output = embedder.output or session.get_outputs()[0].name

    def run(ids: Tokens, mask: Tokens) -> Floats:
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (found,) = session.run([output], {k: v for k, v in given.items() if k in names})
        return np.asarray(found, np.float32)

    return run


def _transformers(embedder: Embedder, paths: dict[str, Path]) -> Network:
    import torch
    from safetensors.torch import load_file

    library = _needed("transformers")
    torch.set_num_threads(1)
    library.logging.set_verbosity_error()
    config = library.AutoConfig.from_pretrained(str(paths["config"]), local_files_only=True)
    model = library.AutoModel.from_config(config, add_pooling_layer=False).eval()
    missing, more = model.load_state_dict(load_file(paths["weights"]), strict=False)
    if missing or any(
        not name.startswith("pooler.") and "position_ids" not in name for name in more
    ):
        raise BenchError(f"embedder {embedder.id}: weights are not of {config.model_type}")
    pad = config.pad_token_id or 0

    def run(ids: Tokens, mask: Tokens) -> Floats:
        tokens = torch.from_numpy(np.where(mask == 1, ids, pad))
        with torch.inference_mode():
            found = model(input_ids=tokens, attention_mask=torch.from_numpy(mask))
        return np.asarray(found.last_hidden_state.numpy(), np.float32)

    return run


_NETWORKS = {"static": _static, "onnx": _onnx, "transformers": _transformers}
