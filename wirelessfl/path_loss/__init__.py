"""Path loss models as settings, one per file, discovered automatically."""

from wirelessfl.needs import DRAWN, POSITIONS, RADIO
from wirelessfl.path_loss.base import PathLossModel
from wirelessfl.registry import Kind

PATH_LOSSES: Kind[PathLossModel] = Kind(
    "path_loss", __name__, PathLossModel, default="umi", needs=(*RADIO, DRAWN, POSITIONS)
)
"""All path loss models."""

__all__ = ["PATH_LOSSES", "PathLossModel"]
