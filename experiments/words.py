"""Settings and their values in words, for tables, axes, titles and legends."""

from __future__ import annotations

from experiments.studies import Case
from wirelessfl.results.names import DATA, MODELS, NAMES, UPLINKS

WORDS = {
    "algorithm": "method",
    "alpha": "Dirichlet parameter",
    "beta2": "β₂",
    "capacities": "width",
    "cells": "N",
    "clients_per_round": "S",
    "convention": "convention",
    "dataset": "data",
    "eps": "ε",
    "local_steps": "H",
    "lr": "step size",
    "lr_ratio": "lr ratio",
    "mask_sizes": "mask sizes",
    "masks": "masks",
    "model": "model",
    "momentum": "momentum",
    "server_lr": "server step size",
    "size_cap": "cap",
    "slowdown": "slowdown",
    "snr_db": "SNR (dB)",
    "split": "split",
    "submodel_scale": "activations",
    "tracking_clients": "tracking clients",
    "uplink": "uplink",
    "vhat": "vhat",
    "warm_start": "warm start",
}
"""Names of settings in tables and figures."""
SYMBOLS = {
    "cells": "number of cells",
    "clients_per_round": "clients per round",
    "local_steps": "local steps",
}
"""Meanings of the names that are symbols."""
AXES = {"size_cap": "cap on the size of a submodel / equal share"} | {
    name: f"{meaning} {WORDS[name]}" for name, meaning in SYMBOLS.items()
}
"""Labels of axes, where they differ from the names of settings."""
SYMBOL = 2
"""Length up to which the name of a setting is a symbol."""
PHRASES = {
    "mask_sizes": "{} masks",
    "slowdown": "slowdown {} in half of the cells",
} | dict.fromkeys(("algorithm", "dataset", "model", "submodel_scale", "uplink"), "{}")
"""Settings whose values are not simply put after their names."""
OF_VALUES = {
    "algorithm": NAMES,
    "dataset": DATA,
    "model": MODELS,
    "submodel_scale": {"none": "unscaled", "width": "scaled by width"},
    "uplink": UPLINKS,
}
"""Names of values, by setting."""
OWN_MASKS = {"fedavg-small": "ordered", "fedrolex": "rolling", "heterofl": "ordered"}
"""Masks of the methods that have no setting for them."""


def shown(case: Case, name: str) -> str:
    """The value of a setting in tables and legends; a dash if the case has none."""
    value = case[name]
    if name == "masks" and value is None:
        value = OWN_MASKS.get(case["algorithm"])
    if name == "capacities" and value is not None:
        return ", ".join(f"{one:g}" for one in value)
    if value is None:
        return "-"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return OF_VALUES.get(name, {}).get(value, text)


def said(case: Case, name: str) -> str:
    """A setting with its value, as in ``N = 4``, ``width 0.5``, ``uniform masks``."""
    word = WORDS[name]
    phrase = PHRASES.get(name, f"{word} = {{}}" if len(word) <= SYMBOL else f"{word} {{}}")
    return phrase.format(shown(case, name))
