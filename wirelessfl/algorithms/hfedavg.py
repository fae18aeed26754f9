"""Hierarchical FedAvg (Liu et al., ICC 2020) and HIST (Fang, Han and Brinton, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import torch
from pydantic import Field

from wirelessfl.algorithms.algorithm import Algorithm, Method, mean_of_nodes
from wirelessfl.algorithms.assigners.partition import CellPartition
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.registry import Choice
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import State

USUAL = FedAvg()


@dataclass(frozen=True)
class HFedAvg(Method):
    """FedAvg in every cell for E edge rounds, then the cloud averages (Liu et al., ICC 2020).

    It has no rules of its own: those of clients and edge servers are those of ``local``.
    """

    name = "hfedavg"

    local: Annotated[
        Algorithm, Field(description="algorithm inside the cells: any algorithm with one server")
    ] = USUAL
    cloud_lr: Annotated[
        float,
        Field(
            gt=0,
            description=(
                "step size of the cloud along the mean change of its model; 1 averages the models"
            ),
        ),
    ] = 1.0

    def __init_subclass__(cls) -> None:
        """Refuse a class with rules for clients or servers, which are those of ``local``.

        Raises:
            ConfigError: the run would ignore them.
        """
        super().__init_subclass__()
        rules = {name for name in dir(Algorithm) if not name.startswith("_")} - {*dir(HFedAvg)}
        if ignored := sorted(rules & vars(cls).keys()):
            raise ConfigError(
                f"{path_of(cls)} defines {', '.join(ignored)}, which would be ignored: clients and "
                "edge servers follow the algorithm in the cells. Define it in an algorithm with "
                "one server, and run that one with --local."
            )

    def __getattr__(self, name: str) -> Any:
        """A setting of ``local``, such as ``lr``: all settings of the algorithm are its attributes.

        Raises:
            AttributeError: ``local`` has no such setting.
        """
        local = vars(self).get("local")  # none yet while a copy is made
        if local is not None and name in (entry.name for entry in fields(local)):
            return getattr(local, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def setting_owners(self) -> tuple[Choice, ...]:
        """The algorithm in the cells, and this one."""
        return (self.local, self)

    def all_settings(self) -> dict[str, Any]:
        """The settings of both, and the name of the algorithm in the cells."""
        return {**self.local.all_settings(), **super().all_settings(), "local": self.local.title}

    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """Return the cloud's next state, given the nodes' states [nodes, P_max] by name.

        x <- x + cloud_lr (mean - x). The cloud's state is the model and, if ``node_state`` of the
        algorithm in the cells is false, all other server state, which is averaged.
        """
        state = mean_of_nodes(cloud, nodes, submodels, weights)
        if self.cloud_lr == 1.0:  # no rounding
            return state
        return state | {"params": torch.lerp(cloud["params"], state["params"], self.cloud_lr)}


@dataclass(frozen=True)
class Hist(CellPartition, HFedAvg):
    """HFedAvg whose cells train disjoint submodels, redrawn every round (Fang et al., 2023).

    Each cell runs FedAvg on its submodel, (4) to (6). The cloud assembles the submodels, (7), and
    averages parameters that several cells hold: those that belong to no partitioned neuron, which
    all cells share, and those of overlapping submodels. With one cell it equals FedAvg. The
    submodels and their settings are those of assigner ``partition``.
    """

    name = "hist"
