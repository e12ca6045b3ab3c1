"""A small text encoder: words, pairs of words and letters of a short name, to an embedding."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn

from benchmark.models.module import Portable

BUCKETS = 8192
_WIDTH = 128
_LETTERS = 3
_BATCH = 4096


class TextModel(Portable):
    """Base of what embeds texts: called with a list of them, it gives ``[n, dim]``."""


class TextEncoder(TextModel):
    """Short texts to embeddings, in the space of an image encoder trained with it.

    A text is the mean of learned vectors of its words, of pairs of neighbours, and of its runs of
    three letters, each in a bucket of its own but for collisions, through two layers. So names of
    unseen classes mean something as far as they share words with those of seen ones.

    Source:
        Bojanowski et al., Enriching Word Vectors with Subword Information (2017), for the input.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, _WIDTH, mode="mean")
        layers = nn.Linear(_WIDTH, 2 * _WIDTH), nn.ReLU(), nn.Linear(2 * _WIDTH, dim)
        self.mix = nn.Sequential(*layers)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Embed ``n`` texts as ``[n, dim]``, not normalised."""
        buckets = [subword_buckets(text) for text in texts]
        device = self.bag.weight.device
        flat = torch.tensor([b for text in buckets for b in text], device=device)
        ends = torch.tensor([len(text) for text in buckets]).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]]).to(device)
        return self.mix(self.bag(flat, starts))


@lru_cache(maxsize=1 << 17)
def subword_buckets(text: str) -> tuple[int, ...]:
    """Buckets of a text's parts; the same on every machine. An empty text has bucket 0.

    Example:
        >>> subword_buckets("Latin letter A") == subword_buckets("LATIN  letter-a")
        True
    """
    words = re.findall(r"\w+", text.lower())
    marked = [f"<{word}>" for word in words]
    pairs = [f"{a} {b}" for a, b in itertools.pairwise(words)]
    runs = [w[i : i + _LETTERS] for w in marked for i in range(len(w) - _LETTERS + 1)]
    hashes = (hashlib.blake2b(p.encode(), digest_size=8) for p in (*marked, *pairs, *runs))
    return tuple(int.from_bytes(h.digest(), "little") % BUCKETS for h in hashes) or (0,)


@torch.inference_mode()
def embed_texts(model: TextModel, texts: Iterable[str], device: torch.device) -> Tensor:
    """Embeddings of all texts, ``[n, d]`` float32 on the CPU."""
    model, every = model.to(device).eval(), list(texts)
    parts = (every[i : i + _BATCH] for i in range(0, len(every), _BATCH))
    return torch.cat([model(part).float().cpu() for part in parts])
