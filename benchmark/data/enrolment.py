"""Templates, and which of them are enrolled: the columns of verification and identification."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.data.base import Evaluation, Images, ImageSet, Ints, Pixels
from benchmark.data.splits import generator


def enrol(
    classes: Ints, template_class: Ints, enrolled: Ints, seed: int
) -> tuple[Ints, tuple[Ints, Ints]]:
    """IJB-C's two galleries: one seeded half of the subjects each; all else is searched for.

    Args:
        classes: The subjects, ``[n_class]``.
        template_class: Subject of each template, ``[n_template]``; the row is the template's id.
        enrolled: For each subject the template that is enrolled, ``[n_class]``.
        seed: Decides the halves.

    Returns:
        Probe template ids ``[n_template - n_class]``, and the template ids of G1 and of G2.
    """
    probes = np.setdiff1d(np.arange(len(template_class)), enrolled)
    first = np.zeros(len(classes), np.bool_)
    first[generator(seed, len(classes), 1).permutation(len(classes))[: len(classes) // 2]] = True
    return probes, (np.sort(enrolled[first]), np.sort(enrolled[~first]))


def templates_of_views(
    classes: Ints, n_views: int, per_template: int, rng: np.random.Generator, seed: int
) -> dict[str, Any]:
    """Columns for items that are ``n_views`` views (faces of a font, writers) of each class.

    ``template`` of each view, class by class, ``[n_class * n_views]``: ``rng`` draws
    ``per_template`` views for each template of a class, the last takes the rest. ``probes`` and
    ``galleries``, by ``seed``: the first template of each class is enrolled.
    """
    n, per_class = len(classes), n_views // per_template
    slots = np.minimum(np.arange(n_views) // per_template, per_class - 1)
    slot = rng.permuted(np.tile(slots, (n, 1)), axis=1)  # [n_class, n_views]
    first = np.arange(n) * per_class
    probes, galleries = enrol(classes, np.repeat(classes, per_class), first, seed)
    template = (first[:, None] + slot).reshape(-1)
    return {"template": template, "probes": probes, "galleries": galleries}


def single_item_templates(
    images: Images, labels: Ints, *, seed: int, gallery: Ints | None = None, **columns: Any
) -> Evaluation:
    """Items that are a template, a medium and a camera of their own.

    ``gallery`` has the rows in the gallery, by default all; ``seed`` decides which gallery item of
    a class is enrolled, and in which gallery; ``columns`` are others of :class:`Evaluation`.
    """
    rows = np.arange(len(labels)) if gallery is None else gallery
    shuffled = generator(seed, 0).permutation(rows)
    subjects, first = np.unique(labels[shuffled], return_index=True)
    probes, galleries = enrol(subjects, labels, shuffled[first], seed)
    return Evaluation.of(
        images, labels, gallery=rows, probes=probes, galleries=galleries, **columns
    )


def divided_sets(
    images: Pixels, labels: Ints, ends: tuple[int, int], seed: int, *,
    trains: NDArray[np.bool_], gallery: NDArray[np.bool_], query: NDArray[np.bool_],
    class_groups: Sequence[str] = (), class_texts: Sequence[str] = (),
) -> tuple[ImageSet, dict[str, Evaluation]]:  # fmt: skip
    """Training and evaluation sets of a dataset whose classes may be held out.

    Masks say what each item serves for, where its class is there. Classes before ``ends[0]`` train,
    and ``seen`` has them; those from there to ``ends[1]`` are held out and alone in ``test``, which
    is ``seen`` where there are none. Groups and texts are those of each class.
    """
    names = sorted(set(class_groups))
    group = np.array([names.index(each) for each in class_groups])

    def rows_of(mask: NDArray[np.bool_], first: int, end: int) -> Ints:
        return np.flatnonzero(mask & (labels >= first) & (labels < end))

    def texts(rows: Ints) -> tuple[str, ...] | None:
        return tuple(class_texts[c] for c in labels[rows]) if class_texts else None

    def items(first: int, end: int) -> Evaluation:
        rows = rows_of(gallery | query, first, end)
        grouped = {"group": group[labels[rows]], "group_names": tuple(names)} if names else {}
        return single_item_templates(
            images[rows], labels[rows], seed=seed, gallery=np.flatnonzero(gallery[rows]),
            query=np.flatnonzero(query[rows]), texts=texts(rows), **grouped,
        )  # fmt: skip

    rows = rows_of(trains, 0, ends[0])
    seen = items(0, ends[0])
    sets = {"seen": seen, "test": items(*ends) if ends[1] > ends[0] else seen}
    return ImageSet(images[rows], labels[rows], texts=texts(rows)), sets
