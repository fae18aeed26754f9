"""Mistakes in users' choices of every kind end in one line that names class, method and remedy."""

import numpy as np
import pytest
import torch

import wirelessfl
from channels import EqualSlots, Rates
from tests.wirelessfl.setup.mistakes import (
    REQUESTS,
    ROUNDS,
    SESSIONS,
    SOME,
    TASKS,
    Halving,
    Owned,
    OwnFading,
    OwnRayleigh,
    OwnTdma,
    arrivals,
    each,
    fails,
    first,
    made_by,
    own,
    received,
    scheduler,
    served,
)
from wirelessfl.assignment.random import Random, RandomAssignment
from wirelessfl.data.splits.iid import IID
from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.failures.waterfall import Waterfall
from wirelessfl.rounds.compression.quantisation import Quantisation
from wirelessfl.schedules import Buffered, BufferedScheduler, Rounds, RoundsScheduler
from wirelessfl.schedules.events import Aggregate, Ask, Give, Report, Started, Stop, Transmit
from wirelessfl.selection import PowerOfChoice, RandomSelection, RoundRobin
from wirelessfl.sessions.attendance import GroupsInTurn
from wirelessfl.sessions.presence.labels import Labels
from wirelessfl.sessions.processes import Change
from wirelessfl.tasks.delays.durations import ShiftedExponential
from wirelessfl.tasks.delays.shifted_exponential import ShiftedExponentialDelays
from wirelessfl.uplinks.tdma import Tdma
from wirelessfl.uplinks.uplink import Reception

CASES = [
    *each(
        "split",
        ROUNDS,
        lambda result: own(IID, "deal", result),
        [
            (lambda valid: [np.arange(240) % 7 == k for k in range(6)], "deal returned bool [240]"),
            (lambda valid: [-1 - samples for samples in valid], "deal returned -"),
            (lambda valid: [samples + 240 for samples in valid], "from 0 to 239"),
            (lambda valid: [*valid[:5], valid[5][:0]], "deal returned no samples for client 5"),
            (lambda valid: valid[:3], "deal returned 3 entries. Return 6 arrays"),
            (lambda valid: [samples / 2 for samples in valid], "deal returned float64 [40]"),
            (lambda valid: [samples[None] for samples in valid], "deal returned int64 [1, 40]"),
            (lambda valid: 7, "deal returned 7"),
            (lambda valid: None, "deal returned None"),
            (fails, "deal: KeyError: 'nothing' (in fails, mistakes.py, line "),
        ],
    ),
    *each(
        "split",
        ROUNDS,
        lambda result: own(Owned, "owners", result),
        [
            (lambda valid: valid[:9], "owners returned 9 entries"),
            (first(6), "owners returned 6 at [0]. Return the client of each of the 240 samples"),
            (lambda valid: None, "owners returned None"),
        ],
    ),
    *each(
        "fading",
        ROUNDS,
        lambda result: own(OwnFading, "build", result),
        [
            (lambda valid: None, "build returned None, without draw. Return an object"),
            (lambda valid: OwnRayleigh, "build returned <class"),
            (fails, "build: KeyError"),
        ],
    ),
    *each(
        "fading",
        ROUNDS,
        lambda result: made_by(OwnFading, "build", OwnRayleigh, "draw", result),
        [
            (lambda valid: valid[:3], "draw returned complex64 [3, 10]. Return a complex"),
            (lambda valid: valid.real, "draw returned float32 [6, 10]"),
            (first(np.nan), "draw returned channels that are not finite"),
            (lambda valid: valid.tolist(), "draw returned [[("),
            (lambda valid: None, "draw returned None"),
            (fails, "draw: KeyError"),
        ],
    ),
    *each(
        "uplink",
        ROUNDS,
        lambda result: made_by(Tdma, "access", EqualSlots, "serve", result),
        [
            (lambda valid: valid.seconds, "access.serve returned float64 [1, "),
            (served(seconds=lambda s: s[..., :3]), "returned float64 [1, 3] as seconds"),
            (served(seconds=first(np.nan)), "returned nan at [0, 0] as seconds"),
            (served(joules=lambda j: -j), "as joules"),
            (served(joules=lambda j: j.tolist()), "as joules"),
            (served(arrived=lambda a: a * 1.0), "as arrived"),
            (lambda valid: None, "access.serve returned None"),
            (fails, "access.serve: KeyError"),
        ],
    ),
    *each(
        "uplink",
        ROUNDS,
        lambda result: own(Tdma, "side_elements", result),
        [(lambda valid: -1, "side_elements returned -1"), (lambda valid: 0.5, "returned 0.5")],
    ),
    *each(
        "uplink",
        REQUESTS,
        lambda result: made_by(Tdma, "access", EqualSlots, "rates", result),
        [
            (lambda valid: valid.bps, "access.rates returned float64 ["),
            (lambda valid: Rates(valid.bps[:0], valid.duty), "returned float64 [0] as bps"),
            (lambda valid: Rates(valid.bps, valid.duty * np.nan), "returned nan at [0] as duty"),
            (fails, "access.rates: KeyError"),
        ],
    ),
    *each(
        "uplink",
        ROUNDS,
        lambda result: own(Tdma, "receive", result),
        [(lambda valid: None, "receive returned None. Return a value of type Reception")],
    ),
    *each(
        "uplink",
        ROUNDS,
        lambda result: made_by(OwnTdma, "receive", Reception, "result", result),
        [
            (lambda valid: valid.mean, "result returned {'update'"),
            (received(lambda mean: mean[0]), "result returned torch.float32 ["),
            (received(lambda mean: mean[:, :5]), "a mean of shape [1, 5] for payload 'update'"),
            (fails, "result: KeyError"),
        ],
    ),
    *each(
        "schedule",
        ROUNDS,
        lambda result: own(Rounds, "scheduler", result),
        [
            (lambda valid: None, "scheduler returned None, without decide, restore, snapshot"),
            (fails, "scheduler: KeyError"),
        ],
    ),
    *each(
        "schedule",
        ROUNDS,
        lambda result: scheduler(Rounds, RoundsScheduler, result),
        [
            (lambda valid: None, "decide returned None on Started()"),
            (lambda valid: [], "nothing can happen after Started()"),
            (lambda valid: [Stop()], "decide returned Stop before any Report"),
            (lambda valid: ["stop"], "decide returned the decision 'stop'"),
            (lambda valid: [Report(0), Give(-1)], "decide returned Give(number=-1, trial=False)"),
            (lambda valid: [Report(0, status={"a": {1}})], "a dict of plain values by name"),
            (lambda valid: Started(), "decide returned Started()"),
            (fails, "decide: KeyError"),
        ],
    ),
    *each(
        "schedule",
        ROUNDS,
        lambda result: made_by(Rounds, "scheduler", RoundsScheduler, "snapshot", result),
        [
            (lambda valid: None, "snapshot returned None"),
            (lambda valid: {"a": {1, 2}}, "snapshot returned {'a': {1, 2}}"),
            (fails, "snapshot: KeyError"),
        ],
    ),
    *each(
        "schedule",
        REQUESTS,
        lambda result: scheduler(Buffered, BufferedScheduler, result),
        [
            (lambda valid: [], "nothing can happen after Started()"),
            (lambda valid: [Ask(0, -4)], "decide returned Ask(task=0, count=-4) on Started()"),
            (lambda valid: [Ask(0, 0)], "nothing can happen after Started()"),
            (lambda valid: [Ask(1, 2)], "which cannot be carried out (IndexError"),
            (lambda valid: [Aggregate(0, [99], [0])], "decide returned Aggregate(task=0, requ"),
            (lambda valid: [Aggregate(0, [], [])], "Return integers >= 0, at least one"),
            (lambda valid: [Aggregate(0, [1], [])], "an integer >= 0 per request as staleness"),
            (lambda valid: [Transmit(0, [1])], "which cannot be carried out (AssertionError"),
            (lambda valid: [Report(0, 7)], "which cannot be carried out (IndexError"),
        ],
    ),
    *each(
        "schedule",
        REQUESTS,
        lambda result: own(Buffered, "active", result),
        [(lambda valid: 0, "active returned 0. Return an integer >= 1, or None")],
    ),
    *each(
        "assignment",
        TASKS,
        lambda result: own(Random, "begin", result),
        [(lambda valid: None, "begin returned None, without choose"), (fails, "begin: KeyError")],
    ),
    *each(
        "assignment",
        TASKS,
        lambda result: made_by(Random, "begin", RandomAssignment, "choose", result),
        [
            (lambda valid: None, "choose returned None"),
            (lambda valid: [], "choose returned 0 entries. Return 1 disjoint arrays of 2"),
            (lambda valid: [valid[0][:1]], "choose returned 1 clients"),
            (lambda valid: [valid[0][[0, 0]]], "choose returned a client twice"),
            (lambda valid: [valid[0] + 9], "from 0 to 5"),
            (lambda valid: [valid[0] * 0.5], "choose returned float64 [2]"),
            (fails, "choose: KeyError"),
        ],
    ),
    *each(
        "assignment",
        TASKS,
        lambda result: made_by(Random, "begin", RandomAssignment, "state", result),
        [(lambda valid: None, "state returned None"), (lambda valid: {"a": [1]}, "for 'a'")],
    ),
    *each(
        "compression",
        ROUNDS,
        lambda result: own(Quantisation, "compress", result),
        [
            (lambda valid: valid[:, :3], "compress returned torch.float32 [1, 3]"),
            (lambda valid: valid.double(), "compress returned torch.float64"),
            (lambda valid: valid * torch.nan, "compress returned values that are not finite"),
            (lambda valid: valid.numpy(), "compress returned float32 ["),
            (lambda valid: None, "compress returned None"),
            (fails, "compress: KeyError"),
        ],
    ),
    *each(
        "select",
        SOME,
        lambda result: own(RoundRobin, "select", result),
        [
            (lambda valid: valid[:1], "select returned 1 clients of cell 0 instead of 2"),
            (lambda valid: valid + 0.5, "select returned float64 [2]. Return 2 of the candidates"),
            (lambda valid: None, "select returned None"),
            (fails, "select: KeyError"),
        ],
    ),
    *each(
        "compression",
        ROUNDS,
        lambda result: own(Quantisation, "bits_per_element", result),
        [
            (lambda valid: -1, "bits_per_element returned -1"),
            (lambda valid: np.nan, "bits_per_element returned nan"),
            (lambda valid: "8", "bits_per_element returned '8'"),
        ],
    ),
    *each(
        "failures",
        ROUNDS,
        lambda result: own(Waterfall, "probability", result),
        [
            (lambda valid: valid[:, :3], "probability returned float64 [1, 3]"),
            (lambda valid: valid + 1, "as a probability. Return probabilities from 0 to 1."),
            (lambda valid: valid * np.nan, "probability returned nan"),
            (lambda valid: None, "probability returned None"),
            (fails, "probability: KeyError"),
        ],
    ),
    *each(
        "lr_schedule",
        ROUNDS,
        lambda result: own(Halving, "shares", result),
        [
            (lambda valid: 0.5, "shares returned 0.5. Return a function"),
            (lambda valid: lambda number: -1.0, "returned -1.0. Return a finite number > 0"),
            (lambda valid: lambda number: np.nan, "returned nan"),
            (lambda valid: lambda number: None, "for round 0, returned None"),
            (lambda valid: lambda: 1.0, "for round 0,: TypeError"),
            (fails, "shares: KeyError"),
        ],
    ),
    *each(
        "delays",
        REQUESTS | {"step_seconds": 0.1},
        lambda result: own(ShiftedExponentialDelays, "build", result),
        [(lambda valid: None, "build returned None"), (fails, "build: KeyError")],
    ),
    *each(
        "delays",
        REQUESTS | {"step_seconds": 0.1},
        lambda result: made_by(
            ShiftedExponentialDelays, "build", ShiftedExponential, "seconds", result
        ),
        [
            (lambda valid: -valid, "seconds returned -"),
            (lambda valid: np.nan, "seconds returned nan"),
            (lambda valid: np.array([valid]), "seconds returned float64 [1]"),
            (lambda valid: None, "seconds returned None. Return a finite number >= 0"),
            (fails, "seconds: KeyError"),
        ],
    ),
    *each(
        "presence",
        SESSIONS,
        lambda result: own(Labels, "attendance", result),
        [(lambda valid: None, "attendance returned None"), (fails, "attendance: KeyError")],
    ),
    *each(
        "presence",
        SESSIONS,
        lambda result: own(Labels, "groups", result),
        [(lambda valid: 2, "groups returned 2. Return a value of type LabelGroups, or None")],
    ),
    *each(
        "presence",
        SESSIONS,
        lambda result: made_by(Labels, "attendance", GroupsInTurn, "open", result),
        [
            (lambda valid: valid[:3], "open returned bool [3]. Return a boolean NumPy array"),
            (lambda valid: np.flatnonzero(valid), "open returned int64"),
            (lambda valid: None, "open returned None"),
            (fails, "open: KeyError"),
        ],
    ),
    *each(
        "presence",
        SESSIONS,
        lambda result: arrivals("initial", result),
        [
            (lambda valid: valid[:3], "initial returned bool [3]"),
            (lambda valid: valid.astype(float), "initial returned float64 [6]"),
        ],
    ),
    *each(
        "presence",
        SESSIONS,
        lambda result: arrivals("changes", result),
        [
            (lambda valid: [], "changes returned []"),
            (lambda valid: iter([Change(1.0, 99, True)]), "changes returned Change(time=1.0"),
            (lambda valid: iter([Change(np.nan, 1, True)]), "changes returned Change(time=nan"),
            (lambda valid: map(fails, [1]), "changes: KeyError"),
        ],
    ),
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
    ("compression", Quantisation, "compress", ROUNDS),
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
