"""Compression of the model on the downlink, one method per file, found by lying in this folder."""

from wirelessfl.registry import Kind
from wirelessfl.rounds.compression.base import Compression, relative_error
from wirelessfl.rounds.compression.none import Uncompressed
from wirelessfl.rounds.compression.quantisation import Quantisation
from wirelessfl.rounds.compression.top_k import TopK

COMPRESSIONS: Kind[Compression] = Kind("compression", __name__, Compression)
"""How models can be compressed on the downlink."""

__all__ = [
    "COMPRESSIONS",
    "Compression",
    "Quantisation",
    "TopK",
    "Uncompressed",
    "relative_error",
]
