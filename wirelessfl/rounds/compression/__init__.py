"""Compression of the model on the downlink, one method per file, discovered automatically."""

from wirelessfl.registry import Kind
from wirelessfl.rounds.compression.compression import Compression, relative_error, sent_vectors
from wirelessfl.rounds.compression.none import Uncompressed
from wirelessfl.rounds.compression.quantisation import Quantisation
from wirelessfl.rounds.compression.top_k import TopK

COMPRESSIONS: Kind[Compression] = Kind(
    "compression",
    __name__,
    Compression,
    default="none",
    text="compression of the model on the downlink",
)
"""All compression methods of the downlink."""

__all__ = [
    "COMPRESSIONS",
    "Compression",
    "Quantisation",
    "TopK",
    "Uncompressed",
    "relative_error",
    "sent_vectors",
]
