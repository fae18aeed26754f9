"""The interface of an algorithm: a client rule and a server rule over explicit state.

An algorithm contains no loop, clock, radio or device. Its dataclass fields are its settings: they
become command-line flags and keys of ``[algorithm]``, and ``Annotated[type, Field(...)]`` gives
their limits and help text. ``docs/guides/own-algorithm.md`` has the complete interface in a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch

from wirelessfl.algorithms.assigners import Assigner, NoAssigner
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import count_of
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import ClientRule, Payload, Received, State

Topology = Literal["star", "cells"]
WHOLE = NoAssigner()
OF_ASSIGNERS = ("submodels", "client_submodels", "redealt", "tested")
"""Methods that give out submodels."""


@dataclass(frozen=True)
class Method(Choice, ABC):
    """What algorithms with one server and algorithms with cells have in common."""

    name = ""
    topology: ClassVar[Topology]
    """``star``: clients report to one server. ``cells``: clients report to the edge server of their
    cell, and edge servers report to the cloud."""
    brings_assigner: ClassVar[bool] = False
    """Whether it derives from an assigner, whose submodels then belong to the method."""

    def __init_subclass__(cls) -> None:
        """Refuse a class that defines submodels without deriving from an assigner.

        Raises:
            ConfigError: the run would ignore its submodels.
        """
        super().__init_subclass__()
        ignored = [name for name in OF_ASSIGNERS if name in vars(cls)]
        if ignored and not issubclass(cls, Assigner):
            raise ConfigError(
                f"{path_of(cls)} defines {', '.join(ignored)}, but is no assigner, so that they "
                "would be ignored: derive it from an assigner too, e.g. class "
                f"{cls.__name__}(wirelessfl.extend.Assigner, FedAvg)."
            )

    @property
    @abstractmethod
    def rule(self) -> Algorithm:
        """The rules of the clients and of the servers that they report to."""

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.title

    @property
    def assigner(self) -> Assigner:
        """Who trains which neurons; full models unless the algorithm brings its assigner."""
        return WHOLE

    @abstractmethod
    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """Return the cloud's next state, given the nodes' states [nodes, P_max] by name."""


@dataclass(frozen=True)
class Algorithm(ClientRule, Method):
    """Base class of algorithms with one server. Client tensors are [clients, P], server ones [P].

    A subclass must define ``send`` and ``merge``; everything else has a default.

    Args:
        lr: step size gamma of the clients' SGD.
    """

    name = ""
    topology: ClassVar[Topology] = "star"
    node_state: ClassVar[bool] = True
    """Whether each edge server keeps its own server state, except the model, if the algorithm runs
    in cells; otherwise the cloud combines that state too."""
    uses_mean: ClassVar[bool] = True
    """Whether ``merge`` uses the run's client weights (``weighting``: uniform or samples)."""

    sends_changes: ClassVar[bool] = True
    """Whether its first payload is the change of a client's model. Option D of schedule
    ``buffered`` measures the variance of these changes."""
    merges_by_lr: ClassVar[bool] = False
    """Whether ``merge`` divides by the clients' step size. If so, all updates in one merge must
    have been computed with the same step size."""

    @property
    def rule(self) -> Self:
        """The algorithm itself."""
        return self

    @abstractmethod
    def merge(self, server: State, received: Received) -> State:
        """Return the next state of the server, or of the edge servers, given what they received.

        The leading axis of the tensors is the node: [nodes, P]. A star has one node.
        """
        return dict(server)

    def initial(self, params: torch.Tensor) -> State:
        """Server state before the first round, given the initial parameters [P]."""
        return {"params": params}

    def outgoing(self, server: State) -> State:
        """Tensors that the server sends, by the names in ``sends``, given its state [nodes, P]."""
        return {name: server[name] for name in self.sends}

    def combine(
        self, cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
    ) -> State:
        """Return the cloud's next state: the average of the nodes' states [nodes, P_max], by name.

        The cloud's state is the model and, if ``node_state`` is false, all other server state.
        """
        return {name: submodels.merge(cloud[name], nodes[name], weights) for name in cloud}

    @property
    def server_step_size(self) -> float:
        """Server step size eta_s along the mean update."""
        return 1.0

    @property
    def recounted(self) -> tuple[str, ...]:
        """Names of server state that equals the mean of the client state of the same name.

        The mean is recomputed when clients join or leave.
        """
        return ()

    @property
    def server_memory(self) -> frozenset[str]:
        """Names of server state other than the model and the means in ``recounted``."""
        state = self.initial(torch.zeros(1))
        names = frozenset(state) if isinstance(state, Mapping) else frozenset()  # `Server` refuses
        return names - {"params", *self.recounted}

    @property
    def remembers(self) -> tuple[str, ...]:
        """Names of the vectors [P] that the server stores for each client, initially zero."""
        return ()

    def remember(self, received: Received) -> State:
        """New values of the vectors stored for each sender, [clients, P] by name."""
        return {}

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """Check that the algorithm works with this client participation.

        Args:
            clients: n, number of registered clients.
            per_round: S, number of clients that train in a round.
            tracking: number of these that send tracking terms.

        Raises:
            ValueError: it does not work; the message names the setting, its value and the remedy.
        """

    def unit(self, payload: Payload, local_steps: float) -> float:
        """Unit in which an analog uplink sends ``payload`` after ``local_steps`` local steps."""
        return self.lr if payload.unit == "lr" else 1.0


def check_participation(
    algorithm: Method,
    clients: int,
    cells: int,
    per_round: int | None,
    tracking: int | None,
    *,
    resolved: bool = True,
) -> None:
    """Check the numbers of participants against the network and the algorithm.

    Args:
        algorithm: algorithm of the run.
        clients: n, number of clients in the network.
        cells: number of cells in the network.
        per_round: S; None for all clients.
        tracking: S_tilde; None for all S.
        resolved: whether ``clients`` and ``cells`` are those of the run; otherwise only numbers
            that are wrong for all networks raise an error.

    Raises:
        ConfigError: the numbers are infeasible, or the algorithm does not work with them; the
            message names the settings.
    """
    sampled = clients if per_round is None else per_round
    trackers = sampled if tracking is None else tracking
    if resolved and not cells <= sampled <= clients:
        raise ConfigError(
            f"clients_per_round={sampled} conflicts with {count_of(clients, 'client')} in "
            f"{count_of(cells, 'cell')}: choose {cells} to {clients}."
        )
    tracks = any(payload.senders == "tracking" for payload in algorithm.rule.payloads)
    if tracking is not None and not tracks:
        raise ConfigError(
            f"tracking_clients={tracking} conflicts with algorithm={algorithm.label!r}, which has "
            "no tracking terms: omit tracking_clients, or choose fadamgc, fa-nt, scaffold or "
            "scaffold-m (inside cells with --local)."
        )
    if trackers > sampled and (resolved or per_round is not None):
        raise ConfigError(
            f"tracking_clients={trackers} conflicts with {sampled} participating clients per "
            f"round: choose tracking_clients 1 to {sampled}."
        )
    if not resolved and (per_round is not None or tracking is not None):
        return
    try:
        algorithm.rule.check(clients, sampled, trackers)
    except ValueError as error:
        raise ConfigError(f"algorithm is {algorithm.label!r}: {error}") from error
