"""The two towers of CLIP, as open_clip has them: images and texts to embeddings of one space.

Source: Radford et al. (2021); its models' names and weights are those of open_clip.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from benchmark.errors import BenchError, unknown
from benchmark.models.texts import TextModel

MEAN = (0.48145466, 0.4578275, 0.40821073)
"""Of pixels in [0, 1], red, green and blue, that OpenAI's and most other weights expect."""
STD = (0.26862954, 0.26130258, 0.27577711)
PREFIX = "open_clip:"
# The library builds both towers: the other one is as small as can be.
_SMALLEST_TEXTS = {"context_length": 1, "vocab_size": 1, "width": 8, "heads": 1, "layers": 1}
_SMALLEST_IMAGES = {"image_size": 8, "patch_size": 8, "width": 8, "head_width": 8, "layers": 1}


def open_clip() -> Any:
    """The library; BenchError where it is not installed."""
    try:
        import open_clip as library
    except ImportError as error:
        raise BenchError(
            "CLIP's towers are built by open_clip, which is not installed: "
            "pip install 'compatbench[clip]'"
        ) from error
    return library


def check_clip(name: str) -> None:
    """Raise a BenchError unless open_clip knows a model."""
    known = open_clip().list_models()
    if name not in known:
        raise unknown("model of open_clip", name, known)


def image_tower(name: str, channels: int, image_size: int) -> tuple[nn.Module, int]:
    """CLIP's image encoder with its projection, and the embedding's length."""
    if channels != 3:
        raise BenchError(f"backbone '{PREFIX}{name}': expected colour images, got {channels}")
    model = _model(name, text_cfg=_SMALLEST_TEXTS, force_image_size=image_size)
    return model.visual, int(model.visual.output_dim)


def _model(name: str, **options: Any) -> Any:
    import logging

    check_clip(name)
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.ERROR)  # it warns that no weights are loaded, which comes later
    try:
        return open_clip().create_model(name, force_custom_text=True, **options)
    finally:
        root.setLevel(before)


class ClipTexts(TextModel):
    """CLIP's text encoder: texts of up to 77 tokens to embeddings, longer ones are cut."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.text = _model(name, vision_cfg=_SMALLEST_IMAGES).text
        self.tokenizer = open_clip().get_tokenizer(name)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Embed ``n`` texts as ``[n, dim]``, not normalised."""
        device = next(self.text.parameters()).device
        embedded: Tensor = self.text(self.tokenizer(list(texts)).to(device))
        return embedded
