"""Path loss by distance: median loss, line of sight and shadowing. One model per file."""

from channels.path_loss.air_to_ground import AirToGround
from channels.path_loss.inh import InH
from channels.path_loss.log_distance import LogDistance
from channels.path_loss.path_loss import PathLoss
from channels.path_loss.rma import Rma
from channels.path_loss.tr36814 import Tr36814
from channels.path_loss.uma import Uma
from channels.path_loss.uma_av import UmaAv
from channels.path_loss.umi import Umi
from channels.path_loss.variant import Variant

PATH_LOSSES: dict[str, type[PathLoss]] = {
    "umi": Umi,
    "uma": Uma,
    "rma": Rma,
    "inh": InH,
    "tr36814": Tr36814,
    "log-distance": LogDistance,
    "air-to-ground": AirToGround,
    "uma-av": UmaAv,
}
"""Path loss models by name."""

__all__ = [
    "PATH_LOSSES",
    "AirToGround",
    "InH",
    "LogDistance",
    "PathLoss",
    "Rma",
    "Tr36814",
    "Uma",
    "UmaAv",
    "Umi",
    "Variant",
]
