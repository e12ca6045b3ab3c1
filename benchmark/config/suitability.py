"""Checks, before anything is planned, that a track has what a protocol needs."""

from benchmark.config import registry
from benchmark.config.data_roots import Root, root_of
from benchmark.config.declarations import Offer
from benchmark.config.embedders import Modality, load_embedder
from benchmark.config.generations import overlap
from benchmark.config.setup import Setup
from benchmark.config.split_sizes import boundary, declared_sizes, lack, none_of
from benchmark.errors import UnsuitedError, nearest


def check(setup: Setup, data_root: Root = None) -> None:
    """Refuse a protocol that needs what the track does not have.

    Of some datasets the files below ``data_root`` say what they have. An UnsuitedError names file,
    key and reason; BenchError if the dataset lacks an option, or its files are not as expected.
    """
    file, track = f"{setup.protocol.family}.yaml", setup.track
    dataset = registry.check_options(track.dataset, track.data, f"{track.id}.yaml: data")
    offer = dataset.offers(root_of(dataset, track.dataset, data_root))
    hint = f"; {dataset.more}" if dataset.more else ""
    _check_groups(setup, offer, file, hint)
    _check_tasks(setup, offer, file, hint)
    _check_sizes(setup, offer, file)
    _check_epochs(setup, file)
    _check_frozen(setup, file)
    _check_modality(setup, dataset.modality)


def _check_modality(setup: Setup, modality: Modality) -> None:
    """Texts need backbones of texts, and images others; of a text there is one view."""
    for generation, model in zip(setup.protocol.generations, setup.models, strict=True):
        if bool(model.embedder) != (modality == "text"):
            wanted = "text:<embedder>" if modality == "text" else "one of images"
            raise UnsuitedError(
                f"{setup.track.id}.yaml: backbone of generation '{generation.name}': expected "
                f"{wanted}, as dataset {setup.track.dataset} has {modality}s, got "
                f"'{model.backbone}'"
            )
        embeds = model.texts and load_embedder(model.texts).modality
        if embeds and (embeds, generation.queries) != ("text", "texts"):
            raise UnsuitedError(
                f"{setup.track.id}.yaml: texts of generation '{generation.name}': expected an "
                f"embedder of texts where queries are texts, got '{model.texts}'"
            )
    views = setup.track.recipe.stored_views
    if modality == "text" and views > 1:
        raise UnsuitedError(
            f"{setup.track.id}.yaml: stored_views: expected 1, as dataset {setup.track.dataset} "
            f"has texts, got {views}"
        )


def _check_frozen(setup: Setup, file: str) -> None:
    """Features are stored of images alone, for all models or for none."""
    frozen = [model.frozen for model in setup.models]
    if not any(frozen):
        return
    if not all(frozen):
        names = ", ".join(
            g.name for g, so in zip(setup.protocol.generations, frozen, strict=True) if not so
        )
        raise UnsuitedError(
            f"{file}: frozen: expected the backbone of every generation, or of none, got "
            f"others of {names} on track {setup.track.id}"
        )
    if setup.track.mirrored:
        raise UnsuitedError(
            f"{file}: mirrored: expected images, of which track {setup.track.id} has stored "
            "features"
        )


def _check_groups(setup: Setup, offer: Offer, file: str, hint: str) -> None:
    """Groups are the track's, splits of them are apart where they must be."""
    protocol, track = setup.protocol, setup.track
    for where, role in protocol.roles:
        if role not in track.groups:
            known = nearest(role, track.groups) or "; it names none (track.groups)"
            raise UnsuitedError(f"{file}: {where}: track {track.id} has no group '{role}'{known}")
    if any(protocol.roles) and "groups" not in offer.columns:
        which = f"dataset {track.dataset} of track {track.id}"
        raise UnsuitedError(f"{file}: {which} has no groups{hint}")
    for i, generation in enumerate(protocol.generations):
        taken = {*setup.members(generation.groups)}
        for role in generation.thinned if taken else ():  # what is not taken cannot become thinner
            outside = sorted({*setup.members([role])} - taken)
            if outside:
                raise UnsuitedError(
                    f"{file}: generations[{i}]: thinned.{role}: expected groups among those of "
                    f"{', '.join(generation.groups)} on track {track.id}, got also "
                    f"{', '.join(outside)}"
                )
    shared = overlap(protocol.generations, setup.members) if protocol.apart else None
    if shared is not None:
        raise UnsuitedError(f"{file}: generations: on track {track.id} {shared}")


def _check_tasks(setup: Setup, offer: Offer, file: str, hint: str) -> None:
    """Every task means something on these items, and the evaluation set exists."""
    protocol, track = setup.protocol, setup.track
    which = f"dataset {track.dataset} of track {track.id}"
    part = offer.evaluation_sets.get(setup.part)
    for i, name in enumerate(protocol.tasks):
        where = f"{file}: tasks[{i}]"
        if part is not None and name in part.rules_out:
            raise UnsuitedError(
                f"{where}: {which} rules {name} out on its evaluation set '{setup.part}': "
                f"{part.rules_out[name]}"
            )
        for column in registry.task(name).needs:
            own_groups = column == "groups" and protocol.evaluation.ranges  # of classes
            if column not in offer.columns and not own_groups:
                lacks = f"{name} needs {column}, which {which} does not have"
                raise UnsuitedError(f"{where}: {lacks}{hint}")
    if part is None:
        raise UnsuitedError(
            f"{file}: evaluation: part: {which} has no evaluation set '{setup.part}'{hint}"
        )


def _check_sizes(setup: Setup, offer: Offer, file: str) -> None:
    """Every generation has data and the evaluation has items, as far as is known without data."""
    facts, here = declared_sizes(setup.track), f"on track {setup.track.id}"
    for i, generation in enumerate(setup.protocol.generations):
        why = lack(generation, facts, setup.members, setup.protocol.every_class)
        if why is not None:
            raise UnsuitedError(f"{file}: generations[{i}] '{generation.name}': {why} {here}")
    chosen = setup.protocol.evaluation
    if chosen.classes == (0.0, 1.0) and not chosen.ranges:
        return
    if offer.evaluation_sets[setup.part].unseen:
        low, high = chosen.classes
        key = f"ranges {chosen.ranges}" if chosen.ranges else f"classes [{low:g}, {high:g}]"
        raise UnsuitedError(
            f"{file}: evaluation: {key} of those trained on: expected items of them in "
            f"evaluation set '{setup.part}' of dataset {setup.track.dataset}, got none"
        )
    n = facts.get("train_classes")
    if n is not None and len({boundary(share, n) for share in chosen.classes}) == 1:
        none = none_of("classes", chosen.classes, f"{n:,}")
        raise UnsuitedError(f"{file}: evaluation: {none} {here}")


def _check_epochs(setup: Setup, file: str) -> None:
    """Only a pretrained pair of encoders needs no training: its classifier is made of names."""
    for i, (generation, model) in enumerate(
        zip(setup.protocol.generations, setup.models, strict=True)
    ):
        pair = generation.queries == "texts" and model.weights is not None and not model.frozen
        if setup.recipe(i).epochs or pair:
            continue
        raise UnsuitedError(
            f"{file}: generations[{i}] '{generation.name}': recipe.epochs: expected at least 1, "
            "got 0: only a pair of a text and an image encoder with weights is taken as it is"
        )
