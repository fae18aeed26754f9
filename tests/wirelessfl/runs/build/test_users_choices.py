"""Mistakes in users' choices of every kind end in one line that names class, method and remedy."""

import numpy as np
import pytest
import torch

import wirelessfl
from channels import EqualSlots, Rates
from tests.wirelessfl.runs.build.mistakes import (
    REQUESTS,
    ROUNDS,
    SESSIONS,
    SOME,
    TASKS,
    Halving,
    Owned,
    OwnFading,
    OwnPresence,
    OwnRayleigh,
    OwnTdma,
    fails,
    first,
    nothing,
    own,
    received,
    served,
)
from wirelessfl.air.compression import Quantisation
from wirelessfl.air.delays import ShiftedExponentialDelays
from wirelessfl.air.durations import ShiftedExponential
from wirelessfl.air.failures import Waterfall
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.data.splits.random_splits import IID
from wirelessfl.engine.assignment.built_in import Random, RandomAssignment
from wirelessfl.engine.events import Aggregate, Ask, Give, Report, Started, Stop, Transmit
from wirelessfl.engine.schedules import Buffered, BufferedScheduler, Rounds, RoundsScheduler
from wirelessfl.engine.selection import PowerOfChoice, RandomSelection, RoundRobin
from wirelessfl.engine.sessions.attendance import GroupsInTurn
from wirelessfl.engine.sessions.presence import Labels
from wirelessfl.engine.sessions.processes import Arrivals, Change

TIMED = REQUESTS | {"step_seconds": 0.1}
SMALL = ROUNDS | {"hidden": (5,), "clients": 4, "chunk": 2}
P = 12 * 5 + 5 + 5 * 4 + 4  # parameters of the model of ``SMALL``
MISTAKES = [
    (ROUNDS, "split", (IID, "deal"), {
        "deal returned bool [240]": lambda valid: [np.arange(240) % 7 == k for k in range(6)],
        "deal returned -": lambda valid: [-1 - samples for samples in valid],
        "from 0 to 239": lambda valid: [samples + 240 for samples in valid],
        "deal returned no samples for client 5": lambda valid: [*valid[:5], valid[5][:0]],
        "deal returned 3 entries. Return 6 arrays": lambda valid: valid[:3],
        "deal returned float64 [40]": lambda valid: [samples / 2 for samples in valid],
        "deal returned int64 [1, 40]": lambda valid: [samples[None] for samples in valid],
        "deal returned 7": lambda valid: 7,
        "deal: KeyError: 'nothing' (in fails, mistakes.py, line ": fails,
    }),
    (ROUNDS, "split", (Owned, "owners"), {
        "owners returned 9 entries": lambda valid: valid[:9],
        "owners returned 6 at [0]. Return the client of each of the 240 samples": first(6),
    }),
    (ROUNDS, "fading", (OwnFading, "build"), {
        "build returned None, without draw. Return an object": nothing,
        "build returned <class": lambda valid: OwnRayleigh,
    }),
    (ROUNDS, "fading", (OwnFading, "build", OwnRayleigh, "draw"), {
        "draw returned complex64 [3, 10]. Return a complex": lambda valid: valid[:3],
        "draw returned float32 [6, 10]": lambda valid: valid.real,
        "draw returned channels that are not finite": first(np.nan),
        "draw returned [[(": lambda valid: valid.tolist(),
        "draw: KeyError": fails,
    }),
    (ROUNDS, "uplink", (Tdma, "access", EqualSlots, "serve"), {
        "access.serve returned float64 [1, ": lambda valid: valid.seconds,
        "returned float64 [1, 3] as seconds": served(seconds=lambda s: s[..., :3]),
        "returned nan at [0, 0] as seconds": served(seconds=first(np.nan)),
        "as arrived": served(arrived=lambda a: a * 1.0),
        "access.serve: KeyError": fails,
    }),
    (ROUNDS, "uplink", (Tdma, "side_elements"), {
        "side_elements returned -1": lambda valid: -1,
        "side_elements returned 0.5": lambda valid: 0.5,
    }),
    (REQUESTS, "uplink", (Tdma, "access", EqualSlots, "rates"), {
        "access.rates returned float64 [": lambda valid: valid.bps,
        "returned nan at [0] as duty": lambda valid: Rates(valid.bps, valid.duty * np.nan),
    }),
    (ROUNDS, "uplink", (Tdma, "receive"), {
        "receive returned None. Return a value of type Reception": nothing,
    }),
    (ROUNDS, "uplink", (OwnTdma, "receive", Reception, "result"), {
        "result returned {'update'": lambda valid: valid.mean,
        "result returned torch.float32 [": received(lambda mean: mean[0]),
        "a mean of shape [1, 5] for payload 'update'": received(lambda mean: mean[:, :5]),
    }),
    (ROUNDS, "schedule", (Rounds, "scheduler"), {
        "scheduler returned None, without decide, restore, snapshot": nothing,
    }),
    (ROUNDS, "schedule", (Rounds, "scheduler", RoundsScheduler, "decide"), {
        "decide returned None on Started()": nothing,
        "nothing can happen after Started()": lambda valid: [],
        "decide returned Stop before any Report": lambda valid: [Stop()],
        "decide returned the decision 'stop'": lambda valid: ["stop"],
        "decide returned Give(number=-1, trial=False)": lambda valid: [Report(0), Give(-1)],
        "a dict of plain values by name": lambda valid: [Report(0, status={"a": {1}})],
        "decide returned Started()": lambda valid: Started(),
        "decide: KeyError": fails,
    }),
    (ROUNDS, "schedule", (Rounds, "scheduler", RoundsScheduler, "snapshot"), {
        "snapshot returned None": nothing,
        "snapshot returned {'a': {1, 2}}": lambda valid: {"a": {1, 2}},
    }),
    (REQUESTS, "schedule", (Buffered, "scheduler", BufferedScheduler, "decide"), {
        "nothing can happen after Started()": lambda valid: [Ask(0, 0)],
        "decide returned Ask(task=0, count=-4) on Started()": lambda valid: [Ask(0, -4)],
        "which cannot be carried out (IndexError": lambda valid: [Ask(1, 2)],
        "decide returned Aggregate(task=0, requ": lambda valid: [Aggregate(0, [99], [0])],
        "Return integers >= 0, at least one": lambda valid: [Aggregate(0, [], [])],
        "an integer >= 0 per request as staleness": lambda valid: [Aggregate(0, [1], [])],
        "which cannot be carried out (AssertionError": lambda valid: [Transmit(0, [1])],
    }),
    (REQUESTS, "schedule", (Buffered, "active"), {
        "active returned 0. Return an integer >= 1, or None": lambda valid: 0,
    }),
    (TASKS, "assignment", (Random, "begin"), {"begin returned None, without choose": nothing}),
    (TASKS, "assignment", (Random, "begin", RandomAssignment, "choose"), {
        "choose returned None": nothing,
        "choose returned 0 entries. Return 1 disjoint arrays of 2": lambda valid: [],
        "choose returned 1 clients": lambda valid: [valid[0][:1]],
        "choose returned a client twice": lambda valid: [valid[0][[0, 0]]],
        "from 0 to 5": lambda valid: [valid[0] + 9],
    }),
    (TASKS, "assignment", (Random, "begin", RandomAssignment, "state"), {
        "state returned None": nothing,
        "for 'a'": lambda valid: {"a": [1]},
    }),
    (ROUNDS, "downlink_compression", (Quantisation, "compress"), {
        "compress returned torch.float32 [1, 3]": lambda valid: valid[:, :3],
        "compress returned torch.float64": lambda valid: valid.double(),
        "compress returned values that are not finite": lambda valid: valid * torch.nan,
        "compress returned float32 [": lambda valid: valid.numpy(),
    }),
    (ROUNDS, "uplink_compression", (Quantisation, "bits"), {
        "bits returned int64 [": lambda valid: -valid,
        "bits returned float64 [": lambda valid: valid + 0.5,
        "bits returned '8'": lambda valid: "8",
    }),
    (SOME, "select", (RoundRobin, "select"), {
        "select returned 1 clients of cell 0 instead of 2": lambda valid: valid[:1],
        "select returned float64 [2]. Return 2 of the candidates": lambda valid: valid + 0.5,
    }),
    (ROUNDS, "failures", (Waterfall, "probability"), {
        "probability returned float64 [1, 3]": lambda valid: valid[:, :3],
        "as a probability. Return probabilities from 0 to 1.": lambda valid: valid + 1,
        "probability returned nan": lambda valid: valid * np.nan,
    }),
    (ROUNDS, "lr_schedule", (Halving, "shares"), {
        "shares returned 0.5. Return a function": lambda valid: 0.5,
        "returned -1.0. Return a finite number > 0": lambda valid: lambda number: -1.0,
        "for round 0, returned None": lambda valid: lambda number: None,
        "for round 0,: TypeError": lambda valid: lambda: 1.0,
    }),
    (TIMED, "delays", (ShiftedExponentialDelays, "build"), {"build returned None": nothing}),
    (TIMED, "delays", (ShiftedExponentialDelays, "build", ShiftedExponential, "seconds"), {
        "seconds returned -": lambda valid: -valid,
        "seconds returned float64 [1]": lambda valid: np.array([valid]),
        "seconds returned None. Return a finite number >= 0": nothing,
    }),
    (SESSIONS, "presence", (Labels, "attendance"), {"attendance returned None": nothing}),
    (SESSIONS, "presence", (Labels, "groups"), {
        "groups returned 2. Return a value of type LabelGroups, or None": lambda valid: 2,
    }),
    (SESSIONS, "presence", (Labels, "attendance", GroupsInTurn, "open"), {
        "open returned bool [3]. Return a boolean NumPy array": lambda valid: valid[:3],
        "open returned int64 [6]": lambda valid: valid.astype(np.int64),
        "open: KeyError": fails,
    }),
    (SESSIONS, "presence", (OwnPresence, "process", Arrivals, "initial"), {
        "initial returned bool [3]": lambda valid: valid[:3],
    }),
    (SESSIONS, "presence", (OwnPresence, "process", Arrivals, "changes"), {
        "changes returned []": lambda valid: [],
        "changes returned Change(time=1.0": lambda valid: iter([Change(1.0, 99, True)]),
        "changes returned Change(time=nan": lambda valid: iter([Change(np.nan, 1, True)]),
        "changes: KeyError": lambda valid: map(fails, [1]),
    }),
    (SMALL, "algorithm", (FedAvg, "merge"), {
        f"merge returned shape [1, 5] for 'params'. Return a tensor of shape [1, {P}].": (
            lambda valid: {"params": valid["params"][:, :5]}
        ),
        "merge returned 3 for 'params'. Return a tensor of": lambda valid: {"params": 3},
        "merge: KeyError: 'nothing' (in fails, mistakes.py, line": fails,
    }),
    (SMALL, "algorithm", (FedAvg, "gradient"), {
        f"gradient returned None. Return a tensor of shape [2, {P}].": nothing,
    }),
    (SMALL, "algorithm", (FedAvg, "direction"), {
        f"direction returned shape [{P}]. Return a tensor of shape [2, {P}].": (
            lambda valid: valid.mean(0)  # it would broadcast over the clients
        ),
    }),
    (SMALL, "algorithm", (FedAvg, "step"), {
        "step returned tensor(": lambda valid: valid[0],
        f"step returned shape [{P}, 2] for 'params'. Return a tensor of shape [2, {P}].": (
            lambda valid: (valid[0].T, valid[1])
        ),
    }),
    (SMALL, "algorithm", (FedAvg, "send"), {
        "send returned None. Return a dict of tensors": nothing,
        " sends ['gossip']": lambda valid: {"gossip": valid["update"]},
    }),
    (SMALL, "algorithm", (FedAvg, "keep"), {
        "keep returned None. Return a dict of tensors": nothing,
    }),
    (SMALL, "algorithm", (FedAvg, "initial"), {
        "initial returned None. Return a dict of tensors": nothing,
        f"initial returned shape [3] for 'params'. Return a tensor of shape [{P}].": (
            lambda valid: {"params": valid["params"][:3]}
        ),
    }),
    (SMALL | {"sessions": 2}, "algorithm", (FedAvg, "initial"), {
        "initial returned None. Return a dict": nothing,
    }),
    (SMALL | {"executor": "loop"}, "algorithm", (FedAvg, "gradient"), {
        f"gradient returned None. Return a tensor of shape [1, {P}].": nothing,
    }),
]  # fmt: skip
CASES = [
    pytest.param(kind, own(*path, result), settings, text, id=f"{kind}-{path[-1]}-{text[:30]}")
    for settings, kind, path, results in MISTAKES
    for text, result in results.items()
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("kind", "cls", "settings", "text"), CASES)
def test_a_mistake_gives_one_line_and_no_folder(
    kind, cls, settings, text, config, toy, monkeypatch
):
    """The line names the user's class and the method; a run without a row leaves no folder."""
    monkeypatch.setitem(globals(), "Chosen", cls)
    settings = config(**settings | {kind: f"{__name__}:Chosen"})
    with pytest.raises((ConfigError, TrainingError)) as caught:
        wirelessfl.run(settings, data=toy)
    message = str(caught.value)
    assert text in message
    assert f"{own.__module__}:Own" in message or "OwnRayleigh" in message
    assert "\n" not in message
    assert not settings.run.out.exists()


def test_an_uplink_without_an_access_is_refused_with_the_settings(config, monkeypatch):
    monkeypatch.setitem(globals(), "Chosen", own(Tdma, "access", lambda valid: None))
    with pytest.raises(ConfigError, match=r"Own': access returned None\. Return a value of type A"):
        config(**REQUESTS, uplink=f"{__name__}:Chosen")


VALID = [
    ("split", IID, "deal", ROUNDS),
    ("uplink", Tdma, "access", ROUNDS),
    ("uplink", Tdma, "receive", ROUNDS),
    ("uplink", Tdma, "access", REQUESTS),
    ("schedule", Rounds, "scheduler", ROUNDS),
    ("schedule", Buffered, "active", REQUESTS),
    ("assignment", Random, "begin", TASKS),
    ("downlink_compression", Quantisation, "compress", ROUNDS),
    ("uplink_compression", Quantisation, "compress", ROUNDS),
    ("uplink_compression", Quantisation, "bits", REQUESTS),
    ("failures", Waterfall, "probability", ROUNDS | {"snr_db": -5}),
    ("select", RandomSelection, "select", SOME),  # the built-in class draws without arrays
    ("select", RandomSelection, "select", SOME | {"algorithm": "hist", "clients_per_round": 4}),
    ("select", PowerOfChoice, "select", SOME),
    ("delays", ShiftedExponentialDelays, "build", REQUESTS | {"step_seconds": 0.1}),
    ("presence", Labels, "attendance", SESSIONS),
]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("kind", "base", "method", "settings"), VALID)
def test_checks_do_not_change_valid_results(kind, base, method, settings, config, toy, monkeypatch):
    """A user's class that returns what the built-in class returns has the same rows."""
    calls = []

    def counted(valid):
        calls.append(valid)
        return valid

    monkeypatch.setitem(globals(), "Chosen", own(base, method, counted))
    rows = []
    for name in (base.name, f"{__name__}:Chosen"):
        result = wirelessfl.run(config(**settings | {kind: name}), data=toy)
        rows.append([row | {"wall_seconds": 0} for row in result.rows])
    assert rows[0] == rows[1]
    assert calls
