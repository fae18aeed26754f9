"""The interface of an algorithm: a client rule and a server rule over explicit state.

An algorithm contains no loop, clock, radio or device. Its dataclass fields are its settings: they
become command-line flags and keys of ``[algorithm]``, and ``Annotated[type, Field(...)]`` gives
their limits and help text. ``docs/guides/own-algorithm-methods.md`` has the contract in a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import of_project
from wirelessfl.base.import_paths import path_of
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import count_of
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import ClientRule, Received, State

ELSEWHERE = {
    "uses_mean": "payloads, as Payload(..., mean=False)",
    "sends_changes": "payloads, as Payload(..., change=False)",
    "unit": "payloads, as Payload(..., unit=FUNCTION of the rule and its local steps)",
    "merges_by_lr": "a setting, as Annotated[float, EQUAL_STEPS]",
    "plain_sgd": "its methods, as @idle_at_zero(SETTING)",
    "server_step_size": "Averaging, as server_lr: derive it from that",
    "combine": "HFedAvg: derive an algorithm with cells from that",
    **dict.fromkeys(
        ("remembers", "remember", "recounted", "node_state"),
        "ServerMemory: derive it from that, too",
    ),
    **dict.fromkeys(
        ("submodels", "client_submodels", "redealt", "tested"),
        "an assigner: derive it from one, too",
    ),
}
"""Members that nothing reads unless an algorithm derives from a class that has them."""


@dataclass(frozen=True)
class Method(Choice, ABC):
    """What algorithms with one server and algorithms with cells have in common."""

    name = ""

    def __init_subclass__(cls) -> None:
        """Refuse a user's class that defines what nothing reads.

        Raises:
            ConfigError: the run would ignore it.
        """
        super().__init_subclass__()
        for name, place in () if of_project(cls) else ELSEWHERE.items():
            if name in vars(cls) and not any(name in vars(base) for base in cls.__mro__[1:]):
                raise ConfigError(
                    f"{path_of(cls)} defines {name}, which would be ignored: it belongs to {place}."
                )


@dataclass(frozen=True)
class Algorithm(ClientRule, Method):
    """Base class of algorithms with one server. Client tensors are [clients, P], server ones [P].

    A subclass must define ``send`` and ``merge``; everything else has a default.

    Args:
        lr: step size gamma of the clients' SGD.
    """

    name = ""

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

    def check(self, clients: int, per_round: int, tracking: int) -> None:
        """Check that the algorithm works with this client participation.

        Args:
            clients: n, number of registered clients.
            per_round: S, number of clients that train in a round.
            tracking: number of these that send tracking terms.

        Raises:
            ValueError: it does not work; the message names the setting, its value and the remedy.
        """


@dataclass(frozen=True)
class ServerMemory(Algorithm):
    """Base class of algorithms whose server stores vectors of each client, or means of theirs."""

    name = ""
    node_state: ClassVar[bool] = True
    """Whether each edge server keeps its own server state, except the model, if the algorithm runs
    in cells; otherwise the cloud combines that state too."""

    @property
    def recounted(self) -> tuple[str, ...]:
        """Names of server state that equals the mean of the client state of the same name.

        The mean is recomputed when clients join or leave.
        """
        return ()

    @property
    def remembers(self) -> tuple[str, ...]:
        """Names of the vectors [P] that the server stores for each client, initially zero."""
        return ()

    def remember(self, received: Received) -> State:
        """New values of the vectors stored for each sender, [clients, P] by name."""
        return {}


def stored_vectors(rule: Algorithm) -> tuple[str, ...]:
    """Names of the vectors [P] that a run stores for each client, at the client or the server."""
    remembers = rule.remembers if isinstance(rule, ServerMemory) else ()
    return (*rule.client_state, *remembers)


def recounted(rule: Algorithm) -> tuple[str, ...]:
    """Names of server state that is a mean of client state, see ``ServerMemory``."""
    return rule.recounted if isinstance(rule, ServerMemory) else ()


def moments(rule: Algorithm) -> frozenset[str]:
    """Names of server state other than the model and means of client state."""
    state = rule.initial(torch.zeros(1))
    names = frozenset(state) if isinstance(state, Mapping) else frozenset()  # `Server` refuses
    return names - {"params", *recounted(rule)}


def mean_of_nodes(
    cloud: State, nodes: State, submodels: Submodels, weights: Sequence[float]
) -> State:
    """The mean of the nodes' states [nodes, P_max], by the names in the cloud's state."""
    return {name: submodels.merge(cloud[name], nodes[name], weights) for name in cloud}


def check_participation(
    rule: Algorithm,
    title: str,
    clients: int,
    cells: int,
    per_round: int | None,
    tracking: int | None,
    *,
    resolved: bool = True,
) -> None:
    """Check the numbers of participants against the network and the algorithm.

    Args:
        rule: the rules of the clients and of the servers that they report to.
        title: the run's algorithm, for messages.
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
    tracks = any(payload.senders == "tracking" for payload in rule.payloads)
    if tracking is not None and not tracks:
        raise ConfigError(
            f"tracking_clients={tracking} conflicts with algorithm={title!r}, which has "
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
        rule.check(clients, sampled, trackers)
    except ValueError as error:
        raise ConfigError(f"algorithm is {title!r}: {error}") from error
