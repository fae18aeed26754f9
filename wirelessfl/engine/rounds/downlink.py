"""The compressed model that a server or the edge servers send to their clients."""

from __future__ import annotations

import torch

from channels.streams import Stream
from wirelessfl.air.compression import Compression, relative_error
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import State


def compressed(
    servers: State, compression: Compression | None, submodels: Submodels, stream: Stream
) -> tuple[State, dict[str, float]]:
    """What clients receive, and the compression error w_2 as a field of rows.

    Only the model is compressed; other tensors, such as control variates, are sent as they are.

    Args:
        servers: what each node sends, [nodes, P_max] by name.
        compression: compression of the model; None for no compression.
        submodels: submodels of the nodes.
        stream: random stream of the edge round, or of the model's version.

    Returns:
        The tensors, and ``compression_error``, the maximum over the nodes; no error without
        compression.
    """
    if compression is None:
        return servers, {}
    own = servers["params"]
    before = submodels.silence(own.clone())
    after = compression.compress_padded(
        before, submodels.lengths, submodels.spec, stream.child("compression")
    )
    nonempty = torch.from_numpy(submodels.lengths > 0).to(before.device)
    error = relative_error(before[nonempty], after[nonempty])
    return servers | {"params": submodels.restore(after, own)}, {"compression_error": error}
