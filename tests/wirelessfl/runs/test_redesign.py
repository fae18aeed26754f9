"""Redesigned runs: decisions at the right rounds, exact costs, and resumed runs that are equal."""

import json
from dataclasses import dataclass, replace

import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.rounds.redesign import Cost, RoundSettings
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.pricing.radio import dependences

DESIGN = ("local_steps", "edge_rounds", "clients_per_round")
OPTIMAL = {"allocation": "optimal"}


@dataclass(frozen=True)
class Planned(wirelessfl.Redesign):
    """Decides by a list, and keeps what it was shown."""

    to: tuple = ()
    every: int = 2

    def decide(self, run):
        place = run.rounds // self.every - 1
        return self.to[place] if place < len(self.to) else run.settings


@dataclass(frozen=True)
class ByRows(wirelessfl.Redesign):
    """Decides by the rows: the steps are the last digits of seconds, accuracy and decisions."""

    every: int = 1

    def decide(self, run):
        last = run.rows[-1]
        assert "wall_seconds" not in last
        assert last["round"] == run.rounds
        steps = 1 + (int(1e7 * last["sim_seconds"]) + int(1e3 * last["accuracy"])) % 5
        edges = 1 + (steps + len(run.decisions)) % 3
        return RoundSettings(steps, edges)


VARIED = (RoundSettings(5, 1), RoundSettings(2, 3, uplink=OPTIMAL), RoundSettings(1, 1, 4))


def design_of(rows):
    return [tuple(row[name] for name in DESIGN) for row in rows]


def without_design(rows):
    drop = (*DESIGN, "wall_seconds")
    return [{name: value for name, value in row.items() if name not in drop} for row in rows]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("hist", {"mask_sizes": "optimized", "uplink": "ofdma"}),
        ("scaffold", {"clients_per_round": 3}),
        ("hfedavg", {"eval_every": 2, "coherence": "edge-round"}),
    ],
)
def test_a_constant_redesign_changes_nothing(config, toy, algorithm, flags):
    plain = wirelessfl.run(config(algorithm, rounds=5, **flags), data=toy)
    constant = wirelessfl.run(config(algorithm, rounds=5, **flags), data=toy, redesign=Planned())
    assert without_design(constant.rows) == without_design(plain.rows)
    assert all(torch.equal(value, constant.params[name]) for name, value in plain.params.items())


def test_rounds_have_the_settings_that_were_decided(config, toy):
    settings = config("hfedavg", rounds=7, edge_rounds=2, uplink="ofdma", client_log=True)
    result = wirelessfl.run(settings, data=toy, redesign=Planned(VARIED))
    begin, later = (3, 2, 6), [(5, 1, 6)] * 2 + [(2, 3, 6)] * 2 + [(1, 1, 4)]
    assert design_of(result.rows) == [begin] * 3 + later
    log = wirelessfl.read_client_log(result.directory)  # E H steps of each client
    assert log["steps"].tolist() == [6] * 12 + [5] * 12 + [6] * 12 + [1] * 4


@pytest.mark.parametrize("coherence", ["round", "edge-round"])
def test_each_segment_costs_what_a_run_with_its_settings_costs(config, toy, coherence):
    """With a draw per edge round, rounds follow those of other lengths: the plain run has 2E."""
    flags = {"rounds": 6, "edge_rounds": 2, "uplink": "ofdma", "coherence": coherence}
    if coherence == "edge-round":
        to = (RoundSettings(3, 4),)
        pairs = {1: (3, 2, "equal", 1), 2: (3, 2, "equal", 2), 3: (3, 4, "equal", 2)}
    else:
        to = (RoundSettings(5, 1), RoundSettings(2, 3, uplink=OPTIMAL))
        kinds = ((3, 2, "equal"), (5, 1, "equal"), (2, 3, "optimal"))
        pairs = {number: (*kinds[(number - 1) // 2], number) for number in range(1, 7)}
    rows = wirelessfl.run(config("hfedavg", **flags), data=toy, redesign=Planned(to)).rows
    for number, (steps, edges, bands, like) in pairs.items():
        there = flags | {"local_steps": steps, "edge_rounds": edges, "allocation": bands}
        prices = wirelessfl.price(config("hfedavg", **there), data=toy).rows
        for name in ("sim_seconds", "joules", "uplink_mib", "downlink_mib", "backhaul_mib"):
            found = rows[number][name] - rows[number - 1][name]
            assert found == pytest.approx(prices[like][name] - prices[like - 1][name], rel=1e-9)


@pytest.mark.parametrize("stop", [1, 3])
def test_resumed_equals_uninterrupted(config, toy, same, halt_at, stop):
    """Decisions depend on the rows, and are made once, also if the run stops just after them."""
    flags = {"rounds": 6, "edge_rounds": 2, "client_log": True}
    whole = wirelessfl.run(config("hist", **flags), data=toy, redesign=ByRows())
    assert len(set(design_of(whole.rows))) > 2
    settings = config("hist", **flags, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, redesign=ByRows(), on_row=halt_at(stop))
    resumed = wirelessfl.resume(settings.run.out, data=toy, redesign=ByRows())
    same(resumed, whole)
    decided = [
        RunFolder(run.directory).load()[1]["handler"]["decisions"] for run in (resumed, whole)
    ]
    assert decided[0] == decided[1]
    assert [entry["round"] for entry in decided[0]] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("rounds", [3, 4])
def test_an_extended_run_equals_a_longer_one(config, toy, same, rounds):
    """Decisions do not depend on the number of rounds; one is due where the shorter run ends."""
    flags = {"edge_rounds": 2}
    longer = wirelessfl.run(config("hfedavg", rounds=6, **flags), data=toy, redesign=ByRows(2))
    first = wirelessfl.run(config("hfedavg", rounds=rounds, **flags), data=toy, redesign=ByRows(2))
    same(wirelessfl.resume(first.directory, rounds=6, data=toy, redesign=ByRows(2)), longer)


def test_costs_are_means_over_other_draws(config, toy):
    """With a line of sight alone, all draws are equal: the cost is that of a round."""
    seen = []

    @dataclass(frozen=True)
    class Looks(wirelessfl.Redesign):
        every: int = 1

        def decide(self, run):
            late = RoundSettings(3, 1, uplink={"round_deadline": 1e-9})
            seen.append([run.cost(RoundSettings(4, 2)), run.cost(run.settings), run.cost(late)])
            return RoundSettings(4, 2)

    flags = {
        "rounds": 2,
        "edge_rounds": 2,
        "uplink": "ofdma",
        "fading": "rician",
        "rician_k_db": 90,
    }
    rows = wirelessfl.run(config("hfedavg", **flags), data=toy, redesign=Looks()).rows
    after, before, late = seen[0]
    assert before.seconds == pytest.approx(rows[1]["sim_seconds"], rel=1e-3)
    assert after.seconds == pytest.approx(rows[2]["sim_seconds"] - rows[1]["sim_seconds"], rel=1e-3)
    assert after.joules == pytest.approx(rows[2]["joules"] - rows[1]["joules"], rel=1e-3)
    assert late == Cost(float("inf"), float("inf"))


def test_a_redesigned_run_has_no_price_over_another_radio(config, toy):
    result = wirelessfl.run(config("hfedavg", rounds=1), data=toy, redesign=Planned())
    assert "redesign=Planned every 2" in next(dependences(result.config))
    with pytest.raises(ConfigError, match=r"redesign=\.\.\. given"):
        wirelessfl.price(result.directory / "config.toml", data=toy)


@pytest.mark.parametrize(
    ("flags", "redesign", "words"),
    [
        ({"eval_every": 2}, Planned(every=3), "multiple of 2 rounds"),
        ({"schedule": "buffered"}, Planned(), "schedule=buffered"),
        ({"sessions": 2}, Planned(), "sessions=2"),
        ({}, Planned(every=0), "every is 0: give an integer >= 1"),
        ({}, "closed", "redesign is 'closed': give an instance"),
        ({}, Planned, "derives from wirelessfl.Redesign"),
    ],
)
def test_wrong_redesigns_are_refused_before_anything_is_written(
    config, toy, flags, redesign, words
):
    settings = config("hfedavg", **flags)
    with pytest.raises(ConfigError, match=words):
        wirelessfl.run(settings, data=toy, redesign=redesign)
    assert not settings.run.out.exists()


def test_numbers_of_passes_are_not_redesigned(toy, tmp_path):
    settings = wirelessfl.Config.from_flags("fedavg", clients=4, local_epochs=1, out=tmp_path / "a")
    with pytest.raises(ConfigError, match="local_epochs=1: it decides local_steps"):
        wirelessfl.run(settings, data=toy, redesign=Planned())
    assert not settings.run.out.exists()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (RoundSettings(0, 1), "local_steps=0: choose an integer from 1"),
        (RoundSettings(3, 2.5), "edge_rounds=2.5"),
        (RoundSettings(3, 1, 99), "clients_per_round=99"),
        (RoundSettings(3, 1, uplink={"bands": 3}), "bands"),
        (RoundSettings(3, 1, uplink={"name": "aircomp"}), "conflicts with uplink 'tdma'"),
        ((3, 1), r"decide returned \(3, 1\)"),
        (None, "decide returned None"),
    ],
)
def test_wrong_decisions_name_the_value(config, toy, decision, words):
    with pytest.raises(ConfigError, match=words):
        wirelessfl.run(config("hfedavg"), data=toy, redesign=Planned((decision,)))


def test_a_star_has_one_edge_round(config, toy):
    with pytest.raises(ConfigError, match=r"from 1 to 1, as algorithm .* has no cells"):
        wirelessfl.run(config("fedavg"), data=toy, redesign=Planned((RoundSettings(3, 2),)))


def test_resume_needs_the_same_redesign(config, toy, halt_at):
    settings = config("hfedavg", checkpoint_seconds=0)
    redesign = Planned(VARIED)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, redesign=redesign, on_row=halt_at(1))
    out = settings.run.out
    with pytest.raises(ConfigError, match=r"give redesign=\.\.\. again"):
        wirelessfl.resume(out, data=toy)
    with pytest.raises(ConfigError, match="the code or a value of redesign"):
        wirelessfl.resume(out, data=toy, redesign=replace(redesign, every=1))
    assert "redesign" not in json.loads((out / "about.json").read_text())
    assert len(wirelessfl.resume(out, data=toy, redesign=redesign).rows) == 4


def test_a_redesign_without_every_is_refused():
    class Never(wirelessfl.Redesign):
        def decide(self, run):
            return wirelessfl.RoundSettings(local_steps=1)

    with pytest.raises(wirelessfl.ConfigError, match="every is None: give an integer >= 1"):
        wirelessfl.run(wirelessfl.Config.from_flags("fedavg", rounds=1), redesign=Never())
