"""Requests to clients that are available as in a trace: who gets them, and which updates arrive."""

import numpy as np
import pytest

import wirelessfl
from wirelessfl.air.participants import PresentClients
from wirelessfl.base.errors import TrainingError
from wirelessfl.engine.tasks import asynchronous
from wirelessfl.engine.tasks.clients import BusyClients
from wirelessfl.runs.timeline import timeline

QUICK = {
    "schedule": "buffered", "requests": 2, "buffer": 1, "rounds": 6, "eval_every": 1,
    "clients": 3, "local_steps": 1, "step_seconds": 0.1, "uplink": "fixed", "rate_mbps": 1e9,
}  # fmt: skip
"""A request takes 0.1 s, and some nanoseconds to upload."""


def work(config, seconds=9.0):
    """Client, begin, end, and what became of each request, in order of their ends."""
    spans = timeline(config, seconds).spans
    spans = [span for span in spans if span.end > span.begin]  # the end of the run stops the rest
    return [(s.client, round(s.begin, 3), round(s.end, 3), s.how) for s in spans]


def test_requests_by_hand(config, toy, stays):
    """Both requests queue at the only client, which leaves; they wait until the next one joins."""
    file = stays((0, 0, 0.25), (1, 0.55, ""), (2, 50, ""))
    settings = config("fedavg", **QUICK, availability_trace=file)
    assert work(settings) == [
        (0, 0.0, 0.1, "done"),
        (0, 0.1, 0.2, "done"),
        (0, 0.2, 0.25, "cancelled"),  # and the request that waits in its queue is lost, too
        (1, 0.55, 0.65, "done"),
        (1, 0.65, 0.75, "done"),
        (1, 0.75, 0.85, "done"),
        (1, 0.85, 0.95, "done"),
    ]
    run = wirelessfl.run(settings, data=toy)
    times = [0, 0.1, 0.2, 0.65, 0.75, 0.85, 0.95]
    assert [row["sim_seconds"] for row in run.rows] == pytest.approx(times, abs=1e-6)
    assert [row["lost"] for row in run.rows] == [0, 0, 0, 2, 2, 2, 2]
    assert [row["available"] for row in run.rows] == [1] * 7
    price = wirelessfl.price(settings, data=toy)
    for row, priced in zip(run.rows, price.rows, strict=True):
        assert priced.items() <= row.items()


def test_an_update_that_arrives_as_its_client_leaves_is_in_time(config, toy, stays):
    """Against a trace that ends shortly before that time."""
    file = stays((0, 0, ""))
    one = QUICK | {"requests": 1}
    rows = wirelessfl.price(config("fedavg", **one, availability_trace=file), data=toy).rows
    end = rows[2]["sim_seconds"]
    merges = []
    for leave in (end, end * (1 - 1e-12)):
        file = stays((0, 0, repr(leave)))
        price = wirelessfl.price(config("fedavg", **one, availability_trace=file), data=toy)
        assert price.ended == "no client is available any more"
        merges.append(price.rows[-1]["round"])
    assert merges == [2, 1]


def test_times_in_rounds_are_numbers_of_updates(config, toy, stays):
    """Client 0 leaves with the second update, and client 1, who was absent, takes its place."""
    file = stays((0, 0, 2), (1, 1.5, ""))
    flags = {"requests": 1, "availability_trace": file, "availability_unit": "rounds"}
    clients = [span[0] for span in work(config("fedavg", **QUICK | flags))]
    assert clients == [0, 0, 1, 1, 1, 1]


def test_only_available_clients_work(config, stays):
    """All work lies within a stay, and a client that has just left holds nothing up."""
    random = np.random.default_rng(3)
    table = []
    for client in range(8):
        begins, lengths = random.uniform(0, 3, 3).cumsum(), random.uniform(0.05, 1.5, 3)
        ends = np.minimum(begins + lengths, [*begins[1:] - 1e-3, 9.0])
        table += [(client, b, e) for b, e in zip(begins, ends, strict=True) if e > b]
    flags = {
        "clients": 8,
        "requests": 5,
        "rounds": 60,
        "buffer": 2,
        "uplink": "tdma",
        "rate_mbps": None,
    }
    flags |= {"availability_trace": stays((0, 0, table[0][1] / 2), *table), "snr_db": -10.0}
    for more in ({}, {"busy_clients": 2}, {"drop_out": 0.3, "cutoff_seconds": 0.3}):
        spans = timeline(config("fedavg", **QUICK | flags | more), 12.0).spans
        assert {"done", "cancelled"} <= {span.how for span in spans}
        for span in spans:
            assert any(
                span.client == client and begin <= span.begin and span.end <= end + 1e-9
                for client, begin, end in [(0, 0, table[0][1] / 2), *table]
            )


def test_requests_are_uniform_over_available_clients():
    """Ranks of present clients, and at the limit, busy ones that are present."""
    mask = np.zeros(5000, dtype=np.bool_)
    mask[[3, 1500, 1501, 4999]] = True
    present, busy = PresentClients(mask), BusyClients(5000, 2)
    present.remove(1501)
    present.add(7)
    places = np.linspace(0, 1, 8, endpoint=False)
    assert [busy.choose(p, 0, present) for p in places] == [3, 3, 7, 7, 1500, 1500, 4999, 4999]
    busy.restore([1501, 7], [])
    assert {busy.choose(p, 0, present) for p in places} == {7}
    busy.restore([1501, 9], [])
    assert [busy.choose(p, 0, present) for p in (0.1, 0.9)] == [3, 4999]


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        ("fedavg", {}),
        ("fedavg", {"busy_clients": 2}),
        ("scaffold", {"drop_out": 0.2}),
        ("hist", {"cells": 3, "buffer": 2, "slowdown": 3.0}),
    ],
)
def test_all_clients_always_available_change_nothing(config, toy, stays, bare, algorithm, more):
    flags = QUICK | {"requests": 4, "uplink": "ofdma", "clients": 6, "rate_mbps": None} | more
    if "cells" in more:
        del flags["requests"], flags["step_seconds"]
    plain = wirelessfl.run(config(algorithm, **flags), data=toy)
    file = stays(*((client, 0, "") for client in range(6)))
    run = wirelessfl.run(config(algorithm, **flags, availability_trace=file), data=toy)
    rows = [{k: v for k, v in row.items() if k != "available"} for row in bare(run.rows)]
    assert rows == bare(plain.rows)
    assert {row["available"] for row in run.rows} == {6}
    for name, value in plain.params.items():
        assert value.equal(run.params[name])


def test_lost_requests_leave_no_trace_in_the_model(config, toy, stays):
    """Client 1 always leaves: its request changes nothing. Client 0 goes on in its samples."""
    flags = QUICK | {"requests": 1, "clients": 2, "rounds": 3}
    rows = []
    for visits in ([], [(1, 0.13, 0.21)]):
        file = stays((0, 0, 0.11), *visits, (0, 0.4, ""))
        run = wirelessfl.run(config("scaffold", **flags, availability_trace=file), data=toy)
        rows.append([(row["sim_seconds"], row["loss"], row["accuracy"]) for row in run.rows])
        assert run.rows[-1]["lost"] == 1 + len(visits)
    assert rows[0] == rows[1]


def test_stays_that_are_too_short_end_in_an_error(config, toy, stays, monkeypatch):
    monkeypatch.setattr(asynchronous, "LATE_IN_A_ROW", 10)
    monkeypatch.setattr(asynchronous, "LATE_PER_CLIENT", 1)
    file = stays((0, 0, 0.05))
    flags = QUICK | {"availability_trace": file, "availability_period": 0.5}
    with pytest.raises(TrainingError, match="last 11 requests left before their updates"):
        wirelessfl.price(config("fedavg", **flags), data=toy)


@pytest.mark.thorough
def test_a_million_registered_clients_cost_what_those_cost_that_come(config, toy, stays):
    """Few bytes per registered client, and none per request."""
    stays_of_few = [(client * 1000, 0.1 * client, 0.1 * client + 3) for client in range(100)]
    flags = QUICK | {"clients": 1_000_000, "requests": 20, "buffer": 5, "rounds": 50}
    file = stays((5, 0, 0.5), *stays_of_few)
    price = wirelessfl.price(config("fedavg", **flags, availability_trace=file))
    assert price.rows[-1]["round"] == 50
    assert max(row["available"] for row in price.rows) <= 31
