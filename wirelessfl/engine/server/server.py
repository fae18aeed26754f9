"""The server of one model, for synchronous rounds, sessions and asynchronous requests."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from channels.arrays import BoolArray
from wirelessfl.air.participants import PresentClients
from wirelessfl.air.uplinks import Transmission, Uplink
from wirelessfl.algorithms import HFedAvg, rule_of
from wirelessfl.algorithms.algorithm import (
    Algorithm,
    Method,
    ServerMemory,
    mean_of_nodes,
    moments,
    recounted,
)
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling
from wirelessfl.base.wording import shown
from wirelessfl.engine.server.client_states import ClientStates, Overlay
from wirelessfl.engine.server.weights import Weights
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import Received, State, check_result

PREFIX = "server."
"""Prefix of the names of a server's tensors in a checkpoint."""


class Server:
    """State of a model at the cloud and at its nodes, and the merges of client updates.

    The nodes are the edge servers. In a star, the only node is the server, which is also the cloud.
    This class does no training.

    Args:
        algorithm: defines the rules of clients and servers.
        uplink: how updates cross the air.
        weights: weights of clients in means.
        states: states of the clients, and the server's memory of each client.
        params: initial parameters [P]; None if the server only counts merges.
        pilot_symbols: pilot symbols from which the servers estimate each client's channel.
    """

    def __init__(
        self,
        algorithm: Method,
        uplink: Uplink,
        weights: Weights,
        states: ClientStates,
        params: torch.Tensor | None,
        pilot_symbols: int = 0,
    ) -> None:
        self.algorithm, self.uplink, self.rule = algorithm, uplink, rule_of(algorithm)
        self.pilot_symbols = pilot_symbols
        self.weights, self.states = weights, states
        self.admit(np.ones(len(weights.node_of), dtype=np.bool_))
        self.version = 0
        """Number of merges at the cloud."""
        self.cloud, self.nodes = ({}, {}) if params is None else self._initial(params)

    def _initial(self, params: torch.Tensor) -> tuple[State, State]:
        """Initial state of the cloud [P] and of the nodes [nodes, P]."""
        state = self.rule.initial(params)
        if not isinstance(state, Mapping) or "params" not in state:
            raise ConfigError(
                f"algorithm {self.rule.title!r}: initial returned {shown(state)}. Return a "
                "dict of tensors [P] by name, with the model as 'params'."
            )
        check_result(self.rule, "initial", state["params"], params.shape, "params")
        central = isinstance(self.rule, ServerMemory) and not self.rule.node_state
        at_nodes = [name for name in state if name != "params" and not central]
        return (
            {name: state[name] for name in state if name not in at_nodes},
            {name: state[name].repeat(self.weights.nodes, 1) for name in at_nodes},
        )

    def admit(self, present: BoolArray) -> None:
        """Set the clients that are present from now on, [clients] boolean."""
        self.present = PresentClients(present)
        self._present_weights = self.weights.sums_where(present)

    def leave(self, client: int) -> None:
        """Remove a client that has left from the present clients."""
        self.present.remove(client)
        self._present_weights -= self.weights.sums(np.array([client]))  # exact: whole numbers

    def begin(self, params: torch.Tensor, *, keep: bool = False) -> None:
        """Restart from ``params`` [P] with the present clients, which keep their states.

        The server's means over clients are recomputed. Its momentum and moments are reset, or kept
        unless they have diverged.
        """
        before = {**self.cloud, **self.nodes}
        self.cloud, self.nodes = self._initial(params)
        kept = moments(self.rule) if keep else frozenset()
        if all(bool(before[name].isfinite().all()) for name in kept):
            for state in (self.cloud, self.nodes):
                state |= {name: before[name] for name in state.keys() & kept}
        self.recount()

    def recount(self) -> None:
        """Recompute the server's means of client states over the present clients.

        A simplification: the states are known here exactly and at no cost, whatever the uplink. A
        server that receives only noisy sums could not recompute its means.
        """
        for name in recounted(self.rule):
            # Zero states, which are not stored, add nothing.
            stored = self.states.clients(name)
            who = np.array([c for c in stored if c in self.present], dtype=np.int64)
            weight, whole = self.weights.of(who), self._present_weights
            at_nodes = name in self.nodes
            before = self.nodes[name] if at_nodes else self.cloud[name][None]
            node = self.weights.nodes_of(who) if at_nodes else np.zeros_like(who)
            if not at_nodes:
                whole = whole.sum(keepdims=True)
            means = torch.zeros_like(before)
            for client, row, share in zip(who.tolist(), node.tolist(), weight, strict=True):
                kept = self.states.get(name, client)
                assert kept is not None, "it is stored"
                means[row].add_(kept.to(means.device), alpha=float(share / whole[row]))
            if at_nodes:
                self.nodes[name] = means
            else:
                self.cloud[name] = means[0]

    def branch(self) -> Server:
        """Return a copy for trial rounds, which change neither this server nor its states.

        The copy shares the present clients, including those that leave later.
        """
        twin = copy.copy(self)
        twin.cloud, twin.nodes = dict(self.cloud), dict(self.nodes)
        twin.states = Overlay(self.states)
        return twin

    def at_nodes(self, submodels: Submodels, cloud: State | None = None) -> State:
        """The nodes' state at the coordinates of their submodels, [nodes, P_max] by name; a copy.

        Args:
            submodels: submodel of each node.
            cloud: the cloud's state when the round was issued; None for its current state.
        """
        gathered = {
            n: submodels.gather(v) for n, v in (self.cloud if cloud is None else cloud).items()
        }
        return gathered | {name: submodels.gather_each(v) for name, v in self.nodes.items()}

    def share(self, rule: Algorithm, sent: Transmission) -> dict[str, torch.Tensor]:
        """By payload, [nodes, 1]: the senders' weight relative to that of all present clients."""
        share, device = {}, self.cloud["params"].device
        for name in (payload.name for payload in rule.payloads):
            silent = sent.silent.get(name)
            clients = sent.clients if silent is None else sent.clients[~silent]
            of_present = self.weights.share(clients, self._present_weights)
            share[name] = torch.from_numpy(of_present).float()[:, None].to(device)
        return share

    def merge(self, rule: Algorithm, nodes: State, received: Received) -> State:
        """Return the next state of the nodes [nodes, P_max]; ``combine`` stores it.

        This call also stores the server's new memory of the senders.

        Args:
            rule: the algorithm, with the step size of the clients' training.
            nodes: state of the nodes, as from ``at_nodes``.
            received: received payloads.
        """
        self._check_received(rule, nodes, received)
        with calling(f"algorithm {rule.title!r}, merge"):
            if isinstance(rule, ServerMemory):
                received = self._remembering(rule, received, nodes["params"])
            merged = rule.merge(nodes, received)
        if not isinstance(merged, Mapping) or merged.keys() != nodes.keys():
            names = sorted(merged) if isinstance(merged, Mapping) else shown(merged)
            raise ConfigError(
                f"algorithm {rule.title!r}: its merge gets the server state {sorted(nodes)} and "
                f"returns {names}. Return the same names."
            )
        for name, value in merged.items():
            check_result(rule, "merge", value, nodes[name].shape, name)
        return merged

    def _check_received(self, rule: Algorithm, nodes: State, received: Received) -> None:
        """Raise unless the uplink has received the mean of every payload."""
        shape = nodes["params"].shape
        for name in (payload.name for payload in rule.payloads):
            mean = received.mean.get(name)
            if mean is None or mean.shape != shape:
                returned = "no mean" if mean is None else f"a mean of shape {list(mean.shape)}"
                raise ConfigError(
                    f"uplink {self.uplink.title!r}: its reception returned {returned} for payload "
                    f"{name!r}. Return a mean of shape {list(shape)}."
                )

    def _remembering(self, rule: ServerMemory, received: Received, like: torch.Tensor) -> Received:
        """Add the server's memory of the senders to ``received``, and store the new memory.

        Updates are processed in order of arrival: a client's second update is compared with its
        first.
        """
        clients = received.clients.tolist()
        held = {name: torch.zeros(len(clients), like.shape[1]) for name in rule.remembers}
        if not clients:  # no update has arrived
            return replace(received, remembered={n: v.to(like.device) for n, v in held.items()})
        for rows in _turns(clients):
            for name, values in held.items():
                for row in rows:
                    before = self.states.get(name, clients[row])
                    if before is not None:
                        values[row].copy_(before)
            remembered = {name: values.to(like.device) for name, values in held.items()}
            received = replace(received, remembered=remembered)
            for name, now in rule.remember(received).items():
                latest = now.detach().cpu()
                for row in rows:
                    self.states.put(name, clients[row], latest[row])
        return received

    def combine(self, nodes: State, submodels: Submodels, weights: Sequence[float]) -> None:
        """Store the nodes' own state, and combine their other state at the cloud.

        Args:
            nodes: state of the nodes [nodes, P_max], as from ``merge``.
            submodels: submodel of each node.
            weights: [nodes], weight of each node in the mean.
        """
        at_cloud = {name: value for name, value in nodes.items() if name not in self.nodes}
        for name, value in self.nodes.items():
            self.nodes[name] = submodels.scatter_each(value, nodes[name])
        algorithm = self.algorithm
        combine = algorithm.combine if isinstance(algorithm, HFedAvg) else mean_of_nodes
        self.cloud = combine(self.cloud, at_cloud, submodels, weights)
        self.version += 1

    def tensors(self) -> dict[str, torch.Tensor]:
        """Complete state for a checkpoint."""
        return {
            **{f"{PREFIX}cloud.{name}": value for name, value in self.cloud.items()},
            **{f"{PREFIX}nodes.{name}": value for name, value in self.nodes.items()},
            **{f"{PREFIX}{name}": value for name, value in self.states.tensors().items()},
            f"{PREFIX}there": torch.from_numpy(self.present.mask.copy()),
            f"{PREFIX}version": torch.tensor(self.version),
        }

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Continue from the result of ``tensors``; other tensors are ignored.

        Raises:
            ValueError: a tensor is not one of this model.
        """
        before, like = {**self.cloud, **self.nodes}, self.cloud["params"]
        device = like.device
        stored = {n.removeprefix(PREFIX): v for n, v in tensors.items() if n.startswith(PREFIX)}
        self.cloud, self.nodes = (
            {n.removeprefix(kind): v.to(device) for n, v in stored.items() if n.startswith(kind)}
            for kind in ("cloud.", "nodes.")
        )
        for name, value in before.items():
            now = self.cloud[name] if name in self.cloud else self.nodes[name]
            flat = value.shape[-1:] == like.shape  # users' algorithms may have other state
            if flat and (now.dtype, now.shape) != (value.dtype, value.shape):
                raise ValueError(f"{name} is {now.dtype} {list(now.shape)}")
        self.states.restore(stored)
        self.admit(stored["there"].numpy())
        self.version = int(stored["version"])


def _turns(clients: Sequence[int]) -> list[list[int]]:
    """Group rows: the first update of each client, then the second of each client, and so on."""
    turns: list[list[int]] = []
    seen: Counter[int] = Counter()
    for row, client in enumerate(clients):
        if seen[client] == len(turns):
            turns.append([])
        turns[seen[client]].append(row)
        seen[client] += 1
    return turns
