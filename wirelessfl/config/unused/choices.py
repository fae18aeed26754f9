"""Choices: settings without effect on the algorithm, the data, and the other choices."""

from __future__ import annotations

from functools import cache

from wirelessfl.config.kinds import KINDS
from wirelessfl.config.settings import Settings
from wirelessfl.config.unused.place import Found
from wirelessfl.data import WITHOUT_IMAGES, dataset_names, text_options


def missing_choices(settings: Settings) -> Found:
    """Settings of choices that the run does not have."""
    frame = settings.frame
    for kind in KINDS:
        table, reason = getattr(settings, kind), frame.why_not(kind)
        if reason is not None:
            yield from (((kind, key), reason) for key in table or ())


def choice_fields(settings: Settings) -> Found:
    """Settings without effect because of other settings of the same choice."""
    for kind, choice in vars(settings.choices).items():
        if choice is not None:
            yield from (((kind, key), reason) for key, reason in choice.unused().items())


def algorithm_settings(settings: Settings) -> Found:
    """Settings that the algorithm does not use."""
    algorithm, name = settings.choices.algorithm, settings.algorithm["name"]
    title = f'conflicts with algorithm "{name}", which'
    if not algorithm.uses_mean:
        yield ("training", "weighting"), f"{title} does not merge by a mean"
    if all(payload.senders != "tracking" for payload in algorithm.payloads):
        yield (
            ("training", "tracking_clients"),
            f"{title} has no tracking terms: choose fadamgc, fa-nt, scaffold or scaffold-m",
        )
    assigner = settings.choices.used_assigner
    if not assigner.of_clients:
        yield (
            ("run", "padding"),
            f"{title} gives clients submodels of equal widths: choose an algorithm such as "
            '"ra-fed"',
        )
    if not (assigner.of_clients or assigner.of_cells):
        yield ("model", "layers"), f'{title} does not split layers: choose "hist" or "ra-fed"'
    if not (*algorithm.client_state, *algorithm.remembers):
        yield ("run", "client_states"), f"{title} keeps no client state"


def data_settings(settings: Settings) -> Found:
    """Text settings of data sets without text, and image settings of data sets without images."""
    name = settings.data.dataset
    if settings.given.data is not None:
        for key in ("tokenizer", "max_length"):
            yield ("data", key), "conflicts with data=..., which is tokenised already"
        if settings.data.pixels != "signed":
            yield (
                ("data", "pixels"),
                "conflicts with data=..., whose values are used as they are: scale the arrays, "
                "e.g. inputs / 255",
            )
        return
    taken = text_options(name)
    for key in ("tokenizer", "max_length"):
        if key not in taken:
            reason = f'conflicts with dataset "{name}", which does not use it: choose '
            yield ("data", key), reason + _datasets_with(key)
    if name in WITHOUT_IMAGES:
        yield ("data", "pixels"), f'conflicts with dataset "{name}", which has no images'


@cache
def _datasets_with(key: str) -> str:
    """The data sets that have a text setting, joined by "or"."""
    return " or ".join(name for name in dataset_names() if key in text_options(name))
