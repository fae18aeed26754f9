"""Sessions: present clients, their labels, and departures during a round."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.engine.sessions.full_batch import full_batch_round
from wirelessfl.air.participants import PresentClients
from wirelessfl.algorithms.step_sizes import Decay
from wirelessfl.algorithms.warm_starts import WARM_STARTS
from wirelessfl.algorithms.warm_starts.warm_start import Past
from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.engine.events import (
    Arrived,
    Begin,
    Close,
    Give,
    Joined,
    Merge,
    Open,
    Present,
    Report,
    Save,
    Started,
    Stop,
)
from wirelessfl.engine.schedules import SessionsScheduler
from wirelessfl.engine.sessions.session_model import HeldLabels, SessionModel
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.build.sessions import held_labels
from wirelessfl.runs.folder.run_folder import RunFolder

FLAGS = {"sessions": 4, "clients": 8, "split": "iid", "rounds": 3}
ALL_DAY = {"presence": "trace", "presence_unit": "rounds"}


def reports(decisions):
    return [d.status["session_round"] for d in decisions if isinstance(d, Report)]


def test_schedule_by_hand():
    """Decisions for two sessions of two rounds, with one trial round before the second."""
    schedule = SessionsScheduler(2, 2, lambda session: session)
    assert schedule.decide(Started()) == [Open(0)]
    decided = schedule.decide(Present(3))
    assert [type(d) for d in decided] == [Begin, Report, Save, Give]
    assert decided[-1] == Give(0)
    assert schedule.decide(Arrived(0)) == [Merge(0)]
    decided = schedule.decide(Present(3))
    assert [type(d) for d in decided] == [Report, Save, Give]
    assert schedule.decide(Arrived(1)) == [Merge(1)]
    decided = schedule.decide(Present(3))
    assert [type(d) for d in decided] == [Report, Close, Save, Open]
    assert decided[-1] == Open(1)
    assert schedule.decide(Present(0)) == []  # no client: wait
    assert schedule.decide(Joined()) == [Open(1)]
    assert schedule.decide(Present(1)) == [Give(1, trial=True)]
    assert schedule.decide(Arrived(1, trial=True)) == [Merge(1, trial=True)]
    assert schedule.decide(Present(0)) == [Open(1)]  # all left during the trial
    assert schedule.decide(Present(2)) == [Give(1, trial=True)]
    schedule.decide(Arrived(1, trial=True))
    assert schedule.decide(Present(2))[-1] == Give(2)
    schedule.decide(Arrived(2))
    decided = schedule.decide(Present(0))  # all have left: session and run end
    assert [type(d) for d in decided] == [Report, Stop]
    assert decided[0].round == 3


def test_rows_are_reported_for_the_first_and_every_fourth_round():
    schedule = SessionsScheduler(1, 10, lambda session: 0, report_every=4, report_first=2)
    seen = reports(schedule.decide(Started())) + reports(schedule.decide(Present(1)))
    for number in range(10):
        schedule.decide(Arrived(number))
        seen += reports(schedule.decide(Present(1)))
    assert seen == [0, 1, 2, 4, 8, 10]


def test_groups_with_different_labels_alternate(config, toy):
    """Groups with labels 0, 1 and 2, 3 alternate; each is evaluated on its own labels."""
    result = wirelessfl.run(config("fedavg", **FLAGS), data=toy)
    assert {row["present"] for row in result.rows} == {4}
    ends = {row["session"]: row for row in result.rows}
    # A model of two labels cannot predict the other two: accuracy drops as a session starts.
    start = {row["session"]: row for row in result.rows if row["session_round"] == 0}
    for session in (1, 2, 3):
        assert start[session]["accuracy"] + 0.2 < ends[session - 1]["accuracy"]
    everything = wirelessfl.run(config("fedavg", **FLAGS, tested_labels="all"), data=toy)
    known = next(row for row in everything.rows if row["round"] == 3)  # labels 0 and 1 only
    assert known["accuracy"] <= 0.55 < ends[0]["accuracy"]


def test_updates_of_clients_that_leave_during_a_round_are_dropped(config, toy, trace):
    """Parameters equal those of rounds without these clients; arrivals join the next session."""
    stays = trace(
        *[(c, 0, "") for c in range(4)],
        (4, 0, 1.5),  # dropped from round 1, then absent
        (5, 0.5, ""),  # present from session 1 on
        (6, 0, 3),  # leaves as the session ends
        (7, 2, 2.9),  # joins and leaves between the starts of two sessions
    )
    settings = config(
        "fedavg", **FLAGS | ALL_DAY | {"sessions": 2, "local_steps": 1}, trace=stays,
        batch_size=1000,
    )  # fmt: skip
    module = FCNN((12,), 4, hidden=(10,))
    setup = build(settings, data=toy, model=module)
    spec, params = setup.model.objective.spec, setup.learner.server.cloud["params"]
    attend = [[0, 1, 2, 3, 4, 6], [0, 1, 2, 3, 6], [0, 1, 2, 3, 6], *[[0, 1, 2, 3, 5]] * 3]
    for clients in attend:
        params = full_batch_round(setup.learner, spec, module, toy, params, clients, 0.1)
    result = wirelessfl.run(settings, data=toy, model=module)
    found = torch.cat([value.reshape(-1) for value in result.params.values()])
    torch.testing.assert_close(found, params, rtol=1e-4, atol=1e-6)
    rows = {(row["session"], row["session_round"]): row for row in result.rows}
    assert [rows[0, t]["present"] for t in range(4)] == [6, 6, 5, 4]
    assert [rows[0, t]["dropped"] for t in range(4)] == [0, 0, 1, 1]
    assert rows[1, 0]["present"] == 5
    assert rows[1, 3]["dropped"] == 1


def test_times_in_seconds_and_in_rounds_agree(config, toy, trace, bare):
    """If all rounds have the same length, traces in seconds and in rounds give the same rows."""
    stays = [(0, 0, ""), (1, 0, ""), (2, 0, 1.5), (3, 0.5, "")]
    flags = FLAGS | {"sessions": 2, "presence": "trace", "step_seconds": 0.5, "uplink": "fixed"}
    rounds = wirelessfl.run(
        config("fedavg", **flags, presence_unit="rounds", trace=trace(*stays)), data=toy
    )
    length = rounds.rows[1]["sim_seconds"]
    assert all(
        row["sim_seconds"] == pytest.approx(row["round"] * length, rel=1e-9) for row in rounds.rows
    )
    in_seconds = [(c, j * length, leave and leave * length) for c, j, leave in stays]
    seconds = wirelessfl.run(config("fedavg", **flags, trace=trace(*in_seconds)), data=toy)
    assert bare(seconds.rows) == bare(rounds.rows)


def test_simultaneous_arrivals_all_attend(config, toy, trace):
    """Three clients that arrive together start the next session together."""
    stays = trace((0, 0, 1e-4), (1, 20, ""), (2, 20, ""), (3, 20, ""))
    flags = FLAGS | {"sessions": 2, "presence": "trace", "local_steps": 1}
    rows = wirelessfl.run(config("fedavg", **flags, trace=stays), data=toy).rows
    start = next(row for row in rows if row["session"] == 1)
    assert (start["sim_seconds"], start["present"]) == (20.0, 3)


@pytest.mark.parametrize("first", [True, False])
def test_changes_at_the_end_of_a_round_precede_the_next_session(config, toy, trace, first):
    """Clients leave and join exactly when session 0 ends, in either order of events."""
    flags = FLAGS | {"sessions": 2, "presence": "trace", "step_seconds": 0.5, "uplink": "fixed"}
    flags |= {"rounds": 2, "local_steps": 1}
    alone = wirelessfl.run(config("fedavg", **flags, trace=trace((0, 0, ""))), data=toy)
    end = next(row["sim_seconds"] for row in alone.rows if row["session_round"] == 2)
    # If client 7 leaves early, the other departures are put on the clock before the round's end.
    early = (7, 0, end / 4) if first else (7, 0, 0.9 * end)
    stays = [(c, 0, end) for c in range(3)] + [(c, end, "") for c in range(3, 7)] + [early]
    rows = wirelessfl.run(config("fedavg", **flags, trace=trace(*stays)), data=toy).rows
    at = {(row["session"], row["session_round"]): row for row in rows}
    assert at[0, 2]["present"] == 0  # clients left when the round ended; their updates arrived
    assert at[0, 2]["dropped"] == 1  # the update of client 7
    assert [at[1, t]["present"] for t in range(3)] == [4, 4, 4]


def test_time_limit_before_the_first_arrival(config, toy, trace):
    """The only row is that of the initial model; no rows are written between sessions."""
    late = trace((0, 5, ""))
    flags = FLAGS | {"presence": "trace", "local_steps": 1}
    rows = wirelessfl.run(config("fedavg", **flags, trace=late, max_seconds=1.0), data=toy).rows
    assert [(row["round"], row["present"], row["sim_seconds"]) for row in rows] == [(0, 0, 1.0)]
    gap = trace((0, 0, 1e-3), (1, 20, ""))
    rows = wirelessfl.run(config("fedavg", **flags, trace=gap, max_seconds=10.0), data=toy).rows
    assert {row["session"] for row in rows} == {0}


def test_a_session_without_clients_ends_early_and_the_next_waits(config, toy, trace):
    """If no client is present, the clock advances to the next arrival."""
    stays = trace((0, 0, 1e-3), (1, 5, ""), (2, 6, ""))
    flags = FLAGS | {"sessions": 3, "presence": "trace", "local_steps": 1}
    result = wirelessfl.run(config("fedavg", **flags, trace=stays), data=toy)
    rows = {(row["session"], row["session_round"]): row for row in result.rows}
    assert rows[0, 1]["dropped"] == 1
    assert (0, 2) not in rows  # no client was left
    assert rows[1, 0]["sim_seconds"] == 5.0
    assert rows[1, 0]["present"] == 1
    assert (2, 3) in rows
    # A round without remaining clients changes nothing.
    assert rows[0, 0]["loss"] == rows[0, 1]["loss"]


def test_participation_in_sessions(config, toy):
    """``clients_per_round`` samples from the present clients."""
    result = wirelessfl.run(config("fedavg", **FLAGS, clients_per_round=3), data=toy)
    whole = wirelessfl.run(config("fedavg", **FLAGS), data=toy)
    assert result.rows[-1]["uplink_mib"] == pytest.approx(whole.rows[-1]["uplink_mib"] * 3 / 4)


def test_step_sizes_decay_within_each_session():
    share = Decay(50, 0.3, 0.9)
    for number in (0, 1, 49, 50, 120):
        t = number % 50
        assert share(number) == pytest.approx(0.7 * (1 - t / 50) ** 0.9 + 0.3, rel=1e-12)


def test_step_size_decay_by_hand(config, toy):
    """With full batches and one step per round, a run is gradient descent with decaying steps."""
    settings = config(
        "fedavg", clients=4, rounds=3, local_steps=1, batch_size=1000, lr_schedule="poly",
        lr_ratio=0.2,
    )  # fmt: skip
    module = FCNN((12,), 4, hidden=(10,))
    setup = build(settings, data=toy, model=module)
    params = setup.learner.server.cloud["params"]
    for t in range(3):
        lr = 0.1 * (0.8 * (1 - t / 3) ** 0.9 + 0.2)
        params = full_batch_round(
            setup.learner, setup.model.objective.spec, module, toy, params, range(4), lr
        )
    result = wirelessfl.run(settings, data=toy, model=module)
    found = torch.cat([value.reshape(-1) for value in result.params.values()])
    torch.testing.assert_close(found, params, rtol=1e-4, atol=1e-6)


def test_infeasible_settings_raise_before_anything_is_written(config, toy, tmp_path, trace):
    """An infeasible overlap or split, an invalid trace, and a session without clients raise."""
    late = trace((0, 0, 2), (1, 4, ""))
    for flags, error, message in (
        ({"overlap": 0.1}, DataError, "overlap is 0.1"),
        ({"split": "distinct", "clients": 12}, DataError, "labels"),
        ({**ALL_DAY, "trace": late}, ConfigError, "session 1 begins at round 3 without a client"),
        ({**ALL_DAY, "trace": tmp_path / "none.csv"}, ConfigError, "none.csv"),
    ):
        settings = config("fedavg", **FLAGS | flags)
        with pytest.raises(error, match=message):
            wirelessfl.run(settings, data=toy)
        assert not settings.run.out.exists()
    twice = trace((0, 0, 5), (0, 4, 9))
    with pytest.raises(ConfigError, match="client 0"):
        wirelessfl.run(config("fedavg", **FLAGS | ALL_DAY, trace=twice), data=toy)


def test_labels_without_test_samples_raise(config, toy):
    keep = toy.test_labels < 2
    half = replace(toy, test_inputs=toy.test_inputs[keep], test_labels=toy.test_labels[keep])
    with pytest.raises(DataError, match=r"no test sample has a label of .* \(2, 3\)"):
        wirelessfl.run(config("fedavg", **FLAGS), data=half)
    wirelessfl.run(config("fedavg", **FLAGS, tested_labels="all"), data=half)


def test_a_trace_that_ends_before_the_run_raises(config, toy, trace):
    """With times in seconds the error occurs during the run, and earlier sessions are saved."""
    stays = trace((0, 0, 1e-3))
    settings = config("fedavg", **FLAGS, presence="trace", trace=stays)
    with pytest.raises(ConfigError, match=r"session . has no client after .* none will join"):
        wirelessfl.run(settings, data=toy)
    assert RunFolder(settings.run.out).rows()


@pytest.mark.parametrize("masks", ["static", "random"])
def test_capacities_and_static_masks_hold_in_trial_rounds(config, toy, masks):
    """A client has its width, and with static masks its neurons, in all rounds of both kinds."""
    flags = {"warm_start": "proposed", "masks": masks, "capacities": [0.5, 0.25]}
    handler = build(config("ra-fed", **FLAGS, **flags), data=toy).handler
    present = np.ones(8, dtype=bool)
    plans = [
        planner.plan(number, PresentClients(present)).client_submodels
        for planner in (handler.planner, handler.rounds[True].planner)
        for number in (0, 1)
    ]
    assert len(set(plans[0].widths[:, 0].tolist())) == 2
    for plan in plans[1:]:
        assert plan.widths.tolist() == plans[0].widths.tolist()
    held = [[layers[0].tolist() for layers in plan.chosen] for plan in plans]
    assert (held[0] == held[1] == held[2] == held[3]) == (masks == "static")


@pytest.mark.parametrize("seed", range(6))
def test_labels_are_those_of_the_present_clients(seed):
    """After each departure of one or several clients; the labels of the last clients remain."""
    draw = Stream(seed, ("labels",)).generator()
    own = [draw.choice(9, draw.integers(1, 4), replace=False).tolist() for _ in range(60)]
    asked = Counter()

    def labels_of(client):
        asked[client] += 1
        return own[client]

    held = HeldLabels(labels_of, range(12))  # no client has labels 9 to 11
    for possible in (None, range(9), range(10)):
        asked.clear()
        there = np.flatnonzero(draw.random(60) < 0.7).tolist()
        present = PresentClients(np.isin(np.arange(60), there))
        held.opened(present, possible)
        assert set(held.held) == set().union(*(own[client] for client in there))
        while there:
            gone = draw.choice(there, min(len(there), int(draw.integers(1, 5))), replace=False)
            there = [client for client in there if client not in gone]
            for client in gone.tolist():
                present.remove(client)
            before = held.held
            held.left(gone.tolist())
            expected = sorted(set().union(*(own[client] for client in there)))
            assert list(held.held) == (expected if there else list(before))
        assert max(asked.values()) <= 10, "once per label, and once when the session opens"
    held.opened(PresentClients(np.zeros(60, dtype=bool)), None)
    assert held.held == before


def test_labels_are_read_where_workers_have_moved_them(config, toy):
    """Worker processes move the data to shared memory; an array of before would dangle."""
    data = replace(toy, train_labels=toy.train_labels.clone())
    held = held_labels(build(config("fedavg", **FLAGS), data=data).model)
    data.train_labels.share_memory_().fill_(3)
    held.opened(PresentClients(np.ones(8, dtype=bool)), None)
    assert held.held == (3,)


def test_few_clients_are_examined_if_labels_are_common():
    """Ten thousand clients, each with two of ten labels; half of them leave."""
    asked = []
    held = HeldLabels(lambda c: asked.append(c) or [c % 10, c % 7], range(10))
    present = PresentClients(np.ones(10_000, dtype=bool))
    held.opened(present, None)
    assert len(asked) <= 10
    for client in Stream(1).generator().permutation(10_000)[:5000].tolist():
        present.remove(client)
        held.left([client])
    assert held.held == tuple(range(10))
    assert len(asked) < 500


def test_servers_momentum_at_a_new_session_by_hand(config, toy):
    """FedACG with one full-batch step a round: m is 0 or the last one when session 1 begins."""
    module, decay = FCNN((12,), 4, hidden=(10,)), 0.5
    flags = FLAGS | {"sessions": 2, "rounds": 2, "local_steps": 1, "batch_size": 1000}
    results = {}
    for choice in ("reset", "keep"):
        settings = config("fedacg", **flags, acceleration=decay, beta=0.0, server_momentum=choice)
        setup = build(settings, data=toy, model=module)
        spec, params = setup.model.objective.spec, setup.learner.server.cloud["params"]
        momentum = torch.zeros_like(params)
        for round_number in range(4):
            if round_number == 2 and choice == "reset":
                momentum = torch.zeros_like(params)
            clients = range(round_number // 2, 8, 2)
            ahead = params + decay * momentum
            after = full_batch_round(setup.learner, spec, module, toy, ahead, clients, 0.1)
            momentum = decay * momentum + after - ahead
            params = params + momentum
        result = wirelessfl.run(settings, data=toy, model=module)
        results[choice] = torch.cat([value.reshape(-1) for value in result.params.values()])
        torch.testing.assert_close(results[choice], params, rtol=1e-4, atol=1e-6)
    assert (results["keep"] - results["reset"]).abs().max() > 1e-3


def test_momentum_of_servers_without_state_is_refused(config):
    """FedAvg's server has none, and SCAFFOLD's mean is recomputed in each session anyway."""
    for algorithm in ("fedavg", "scaffold"):
        with pytest.raises(ConfigError, match=r"server_momentum.*no momentum or moments"):
            config(algorithm, **FLAGS, server_momentum="keep")


def test_a_diverged_momentum_is_not_kept(config, toy):
    """The server starts afresh, and trial copies never have the momentum."""
    setup = build(config("fedadam", **FLAGS, server_momentum="keep"), data=toy)
    server = setup.learner.server
    params = server.cloud["params"].clone()
    server.nodes["first"] = torch.ones_like(server.nodes["first"])
    server.begin(params, keep=True)
    assert bool((server.nodes["first"] == 1).all())
    model = SessionModel(
        setup.learner,
        WARM_STARTS.find("proposed")(),
        setup.learner.spec,
        draw=lambda number: params,
        labels=None,
        possible=lambda session: None,
        trial_stream=Stream(1),
        keep_momentum=True,
    )
    model.past = Past(pilot=params)
    assert not bool(model.trial.server.nodes["first"].any())
    assert bool((server.nodes["first"] == 1).all())
    server.nodes["second"] = server.nodes["second"] * torch.inf
    server.begin(params, keep=True)
    assert not bool(server.nodes["first"].any())
    assert bool(server.nodes["second"].isfinite().all())
