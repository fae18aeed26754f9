"""Coverage: the weight of the clients whose submodels cover each coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from wirelessfl.submodels import ClientSubmodels
from wirelessfl.submodels.merging import covered_mean
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks import AirRound


@dataclass(frozen=True, eq=False)
class Cover:
    """Weight of the clients that cover each coordinate, by payload.

    Args:
        submodels: submodels of the clients.
        weight: by payload, [nodes, P], weight of the clients that cover a coordinate, relative to
            all senders of the node.
        count: [nodes, P], number of clients that cover each coordinate, Gamma^i.
    """

    submodels: ClientSubmodels
    weight: dict[str, torch.Tensor]
    count: torch.Tensor

    @classmethod
    def of(
        cls,
        each: ClientSubmodels | None,
        air: AirRound,
        payloads: Sequence[str],
        like: torch.Tensor,
    ) -> Cover | None:
        """Coverage of an upload; None if clients train the complete model of their node.

        Args:
            each: submodel of each sender; None if all train the complete model of their node.
            air: the upload.
            payloads: names of all payloads.
            like: a tensor on the target device.
        """
        if each is None:
            return None
        common, count = each.cover(air.node, air.weights.tolist(), air.nodes)
        found = dict.fromkeys(payloads, common.to(like.device))
        for name in air.silent:
            weight, _ = each.cover(air.node, air.weights_of(name).tolist(), air.nodes)
            found[name] = weight.to(like.device)
        return cls(each, found, count)

    def exchanged(self) -> torch.Tensor | None:
        """Elements that at least one client sends, [nodes, P] boolean; None if all are sent.

        Over the air, the clients of a node transmit these elements together; a client is silent on
        elements that it does not train.
        """
        covered = self.count > 0
        return None if covered.all() else covered

    def metrics(self) -> dict[str, float]:
        """Minimum number of clients per covered coordinate, and fraction of uncovered coordinates.

        The first is Gamma_q; its minimum over the rounds is Gamma*.
        """
        covered = self.count[self.count > 0]
        fewest = int(covered.min()) if len(covered) else 0
        return {"coverage": float(fewest), "uncovered": 1 - len(covered) / self.count.numel()}

    def of_those_who_cover(self, received: Received) -> Received:
        """Change each mean to that of the clients that cover the coordinate; 0 if none does."""
        mean = {
            name: covered_mean(value, self.weight[name], 0.0)
            for name, value in received.mean.items()
        }
        share = {name: value * self.weight[name] for name, value in received.share.items()}
        covers = None
        if received.each:
            rows = np.arange(len(received.clients))
            covers = self.submodels.covers(rows).to(next(iter(mean.values())).device)
        return replace(received, mean=mean, share=share, covers=covers)
