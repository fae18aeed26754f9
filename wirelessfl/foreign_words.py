"""Words of other packages and papers for what is not there, and what serves instead."""

from __future__ import annotations

from collections.abc import Mapping

_PRIVACY = " There is no differential privacy; your own algorithm can add noise to what it sends."
_UPLOADS = (
    " Uploads are not compressed: --compression quantisation is that of the downlink. An algorithm "
    "of your own can round or sparsify what it sends."
)
_MOTION = (
    " Clients do not move, and channels of different rounds are independent: see --coherence, or "
    "give a network with recorded channels, channels.Recorded."
)
_TRACKERS = " Choose --track tensorboard or trackio, or give an observer of your own."
_ROBUST = " There are no attacks and no robust aggregation; derive an algorithm of your own."

FOREIGN: Mapping[str, str] = {
    **dict.fromkeys(("wandb", "weights_and_biases", "mlflow", "neptune", "comet"), _TRACKERS),
    **dict.fromkeys(
        ("dp", "dp_sgd", "dpsgd", "epsilon", "noise_multiplier", "privacy", "max_grad_norm"),
        _PRIVACY,
    ),
    **dict.fromkeys(
        (
            *("quantization", "quantize", "quantizer", "uplink_bits", "uplink_compression", "bits"),
            *("top_k", "topk", "sparsity", "sparsification", "qsgd", "signsgd"),
        ),
        _UPLOADS,
    ),
    **dict.fromkeys(
        ("doppler", "doppler_hz", "speed", "speed_kmh", "velocity", "mobility", "coherence_time"),
        _MOTION,
    ),
    **dict.fromkeys(
        ("krum", "multi_krum", "trimmed_mean", "median", "byzantine", "attack", "attackers"),
        _ROBUST,
    ),
    "fedopt": " It is a family: choose fedadam, fedyogi, fedadagrad or fedams.",
    "fedavgm": " It is fedavg with server momentum; choose fedavg-m or fedacg.",
    "fedsgd": " It is fedavg with one local step: --local-steps 1.",
    **dict.fromkeys(
        ("fedbn", "fedper", "fedrep", "ditto", "pfedme", "per_fedavg"),
        " There are no personal models.",
    ),
    **dict.fromkeys(
        ("fednova", "feddyn"), " It is not there; docs/extending.md shows how to add an algorithm."
    ),
    **dict.fromkeys(
        ("secagg", "secure_aggregation", "encryption"), " There is no secure aggregation."
    ),
}
"""The sentence for each word, with underscores."""


def foreign(word: object) -> str:
    """What serves instead of a word of other packages, with a leading space; "" if unknown."""
    return FOREIGN.get(str(word).lower().lstrip("-").replace("-", "_"), "")
