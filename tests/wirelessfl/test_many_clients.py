"""Memory and work per round follow the clients that take part, not those that are registered."""

import tracemalloc

import pytest

import wirelessfl
from channels.streams import Stream
from wirelessfl.data.dealt_samples import DealtSamples
from wirelessfl.models.submodels import dealt_capacities

FEW, MANY = 5_000, 45_000
SPLIT = {"split": "iid", "samples_per_client": 6, "reuse": True}
ARRIVALS = {
    "sessions": 1, "presence": "arrivals", "presence_unit": "rounds", "arrival_rate": 2.0,
    "mean_stay": 50.0, "initially_present": 90, "warm_start": "previous", "clients_per_round": 5,
}  # fmt: skip
LABELS = {
    "sessions": 2, "presence": "labels", "warm_start": "previous", "clients_per_round": 5,
}  # fmt: skip
RUNS = {
    "client states": ("fadamgc", {"clients_per_round": 5, "client_states": "disk"}),
    "arrivals": ("scaffold", ARRIVALS),
    "present at first": ("scaffold", ARRIVALS | {"initially_present": None, "mean_stay": 1e6}),
    "labels": ("fedavg", LABELS),
    "buffered": ("fedbuff", {"requests": 5, "buffer": 2, "eval_every": 1}),
    "drawn delays": (
        "fedbuff",
        {"requests": 5, "buffer": 2, "eval_every": 1, "delays": "shifted-exponential",
         "step_seconds": 0.1},
    ),
    "mixtures": (
        "fedavg",
        {"clients_per_round": 5, "split": "dirichlet", "samples_per_client": 300},
    ),
    "weights": ("fedavg", {"clients_per_round": 5, "weighting": "samples"}),
    "cells": ("hfedavg", {"clients_per_round": 8, "cells": 4}),
    "capacities": ("heterofl", {"clients_per_round": 5, "capacities": [1.0, 0.5]}),
}  # fmt: skip


def memory_of(settings, toy):
    """Bytes at the last row, and the largest intermediate result of a round."""
    seen = []

    def on_row(row):
        held, peak = tracemalloc.get_traced_memory()
        seen.append((held, peak - held))
        tracemalloc.reset_peak()

    tracemalloc.start()
    try:
        wirelessfl.run(settings, data=toy, on_row=on_row)
    finally:
        tracemalloc.stop()
    assert len(seen) >= 4
    return seen[-1][0], min(transient for _, transient in seen[1:])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", RUNS)
def test_memory_of_registered_clients(config, toy, name):
    """A client takes at most 17 bytes, and nothing is computed for all clients in a round."""
    algorithm, flags = RUNS[name]
    settings = SPLIT | flags | {"rounds": 3, "local_steps": 1, "workers": 1}
    wirelessfl.run(config(algorithm, **settings, clients=100), data=toy)  # imports what it needs
    (few, round_of_few), (many, round_of_many) = (
        memory_of(config(algorithm, **settings, clients=clients), toy) for clients in (FEW, MANY)
    )
    assert (many - few) / (MANY - FEW) <= 17
    assert round_of_many - round_of_few < MANY - FEW, "less than a byte per client"


def test_samples_of_few_clients_are_looked_up(config, toy, monkeypatch):
    """A run with labels needs the data of its participants, and of a few clients per session."""
    asked, of = [], DealtSamples._samples_of
    monkeypatch.setattr(
        DealtSamples, "_samples_of", lambda self, client: asked.append(client) or of(self, client)
    )
    wirelessfl.run(config("fedavg", **SPLIT, **LABELS, clients=5000, rounds=2), data=toy)
    assert 2 * 2 * 5 <= len(asked) < 200


def test_capacities_are_dealt_once(monkeypatch):
    """The draw for all clients is made once, not in every round."""
    made, generator = [], Stream.generator
    monkeypatch.setattr(
        Stream, "generator", lambda self, *a: made.append(self.names) or generator(self, *a)
    )
    found = [dealt_capacities((1.0, 0.5), 50, Stream(8, ("only here",)), [3, 4]) for _ in range(9)]
    assert len(made) == 1
    whole = dealt_capacities((1.0, 0.5), 50, Stream(8, ("only here",)))
    assert all(some.tolist() == whole[[3, 4]].tolist() for some in found)
