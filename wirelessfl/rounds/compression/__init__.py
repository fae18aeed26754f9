"""Compression of the model on the downlink, one method per file, discovered automatically."""

from wirelessfl.needs import Needs
from wirelessfl.registry import Kind
from wirelessfl.rounds.compression.base import Compression, relative_error
from wirelessfl.rounds.compression.none import Uncompressed
from wirelessfl.rounds.compression.quantisation import Quantisation
from wirelessfl.rounds.compression.top_k import TopK

DOWNLINK = Needs(
    lambda run, _: not run.regime.of_tasks,
    'conflicts with schedule "{run.schedule.title}", which has no synchronous downlink: choose '
    'schedule "rounds"',
)
COMPRESSIONS: Kind[Compression] = Kind(
    "compression", __name__, Compression, default="none", needs=(DOWNLINK,)
)
"""All compression methods of the downlink."""

__all__ = [
    "COMPRESSIONS",
    "Compression",
    "Quantisation",
    "TopK",
    "Uncompressed",
    "relative_error",
]
