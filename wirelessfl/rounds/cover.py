"""Coverage: the weight of the clients that cover each coordinate, where they train submodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from wirelessfl.submodels import ClientSubmodels
from wirelessfl.submodels.merging import covered_mean
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks import AirRound


@dataclass(frozen=True, eq=False)
class Cover:
    """By payload, the weight of those who cover each coordinate.

    Args:
        submodels: what the clients train.
        weight: by payload, [nodes, P], over that of all who send it at the node.
        count: [nodes, P], how many clients cover each coordinate, Gamma^i.
    """

    submodels: ClientSubmodels
    weight: dict[str, Tensor]
    count: Tensor

    @classmethod
    def of(
        cls,
        each: ClientSubmodels | None,
        air: AirRound,
        payloads: Sequence[str],
        like: Tensor,
    ) -> Cover | None:
        """That of an upload; None where clients train what their node has.

        Args:
            each: what each sender trains of its node's model; None: all of it.
            air: the upload.
            payloads: names of all.
            like: a tensor on the device that is wanted.
        """
        if each is None:
            return None
        common, count = each.cover(air.node, air.weights.tolist(), air.nodes)
        found = dict.fromkeys(payloads, common.to(like.device))
        for name in air.silent:
            weight, _ = each.cover(air.node, air.weights_of(name).tolist(), air.nodes)
            found[name] = weight.to(like.device)
        return cls(each, found, count)

    def exchanged(self) -> Tensor | None:
        """Which elements anybody sends, [nodes, P]; None: all.

        Over the air the clients of a node go through these together, each silent where it has none.
        """
        covered = self.count > 0
        return None if covered.all() else covered

    def metrics(self) -> dict[str, float]:
        """Minimum number of clients on a covered coordinate, and the share of uncovered ones.

        The first is Gamma_q, whose minimum over the rounds is Gamma*.
        """
        covered = self.count[self.count > 0]
        fewest = int(covered.min()) if len(covered) else 0
        return {"coverage": float(fewest), "uncovered": 1 - len(covered) / self.count.numel()}

    def of_those_who_cover(self, received: Received) -> Received:
        """``received`` with means over the clients that cover a coordinate, 0 where none does."""
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
