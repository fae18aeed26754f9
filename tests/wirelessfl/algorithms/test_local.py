"""Single-server algorithms inside the cells of HIST and HFedAvg, over OMA and AirComp."""

import pickle

import pytest
import torch

import wirelessfl
from tests.wirelessfl.small import flat, model
from wirelessfl.algorithms import Algorithm, algorithm_classes, find_algorithm
from wirelessfl.algorithms.assigners.narrow import Narrow
from wirelessfl.algorithms.fadamgc import FAdamGC
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.hfedavg import HFedAvg, Hist
from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.config.choices import PRESETS
from wirelessfl.runs.build import build

LOCALS = [
    name
    for name, own in algorithm_classes().items()
    if not issubclass(own, HFedAvg) and name not in (*PRESETS, "fedavg")
]
OWN = [name for name in LOCALS if issubclass(find_algorithm(name), Narrow)]
"""Algorithms that choose client submodels; their cells must train the full model."""
ANYWHERE = [name for name in LOCALS if name not in OWN]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("outer", "local"),
    [("hist", name) for name in ANYWHERE] + [("hfedavg", name) for name in LOCALS],
)
def test_one_cell_and_one_edge_round_equal_the_inner_algorithm(config, toy, outer, local):
    """With N = E = 1 and equal chunks, the run is bit-identical to one of the inner algorithm."""
    payloads = find_algorithm(local)().payloads
    tracking = {"tracking_clients": 2} if any(p.senders == "tracking" for p in payloads) else {}
    narrow = {"capacities": (0.5, 1.0)} if local in OWN else {}
    flags = {"rounds": 4, "lr": 0.01, "clients_per_round": 4, "chunk": 2}
    flags |= tracking | narrow
    inside = config(outer, local=local, cells=1, edge_rounds=1, **flags)
    one = wirelessfl.run(inside, data=toy, model=model())
    two = wirelessfl.run(config(local, **flags), data=toy, model=model())
    assert torch.equal(flat(one), flat(two))
    assert one.rows[-1]["uplink_mib"] == two.rows[-1]["uplink_mib"]
    assert one.rows[-1]["accuracy"] > one.rows[0]["accuracy"]


@pytest.mark.parametrize("local", OWN)
def test_hist_refuses_algorithms_with_client_submodels(config, local):
    with pytest.raises(ConfigError, match=f"local='{local}'.*hist.*Choose algorithm hfedavg"):
        config("hist", local=local)


def test_one_cell_over_the_air_equals_the_inner_algorithm(config, toy):
    flags = {"rounds": 3, "lr": 0.01, "uplink": "aircomp", "tracking_clients": 3}
    one = wirelessfl.run(
        config("hist", local="fadamgc", cells=1, edge_rounds=1, **flags), data=toy, model=model()
    )
    two = wirelessfl.run(config("fadamgc", **flags), data=toy, model=model())
    assert torch.equal(flat(one), flat(two))
    assert one.rows[-1]["air_error"] == two.rows[-1]["air_error"] > 0


def trained(setup, rounds):
    for t in range(rounds):
        setup.learner.learn(setup.planner.plan(t), setup.learner.server.cloud)
    return setup.learner


def zero_tracking(training):
    """Reset y and y_i to 0, as if no client had ever tracked."""
    training.server.nodes["tracking"].zero_()
    for client in range(len(training.server.weights.node_of)):
        if training.server.states.get("tracking", client) is not None:
            training.server.states.put("tracking", client, torch.zeros(training.server.states.size))


@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
def test_fadamgc_without_tracking_is_local_adam_in_hist(config, toy, uplink):
    """If y and y_i are reset to 0 before every edge round, both models are bit-identical."""
    flags = {"rounds": 3, "edge_rounds": 1, "lr": 0.01, "uplink": uplink}
    one = build(config("hist", local="fadamgc", **flags), data=toy, model=model())
    two = build(config("hist", local="local-adam", **flags), data=toy, model=model())
    for t in range(3):
        zero_tracking(one.learner)
        one.learner.learn(one.planner.plan(t), one.learner.server.cloud)
        two.learner.learn(two.planner.plan(t), two.learner.server.cloud)
    assert torch.equal(one.learner.server.cloud["params"], two.learner.server.cloud["params"])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
@pytest.mark.parametrize("local", ANYWHERE)
def test_padding_stays_exactly_zero(config, toy, local, uplink):
    """With cells of 3 and 4 neurons, updates and states are zero in the narrower cells' padding."""
    air = {"beamformer": "random"} if uplink == "aircomp" else {}
    flags = {"lr": 0.01, "uplink": uplink, "edge_rounds": 2, "executor": "vmap"}
    settings = config("hist", local=local, **flags, **air)
    setup = build(settings, data=toy, model=model())
    training, seen = setup.learner, []
    rule, keep = training.server.rule, training.server.states.scatter
    merge = type(rule).merge

    def watching_merge(server, received):
        after = merge(rule, server, received)
        seen.append({name: value.clone() for name, value in after.items()})
        return after

    def watching_keep(submodels, clients, node, kept):
        for value in kept.values():
            for cell, row in zip(node.tolist(), value, strict=True):
                assert not row[submodels.index[cell] < 0].any()
        keep(submodels, clients, node, kept)

    object.__setattr__(rule, "merge", watching_merge)
    training.server.states.scatter = watching_keep
    for t in range(2):
        plan = setup.planner.plan(t)
        idle = plan.submodels.index < 0
        assert idle.any()
        training.learn(plan, training.server.cloud)
        for state in seen:
            assert not state["params"][idle].any()
            if "tracking" in state:
                assert not state["tracking"][idle].any()
        seen.clear()


def test_an_edge_server_tracks_its_own_clients_in_full_coordinates(config, toy):
    """y_j is the mean of the cell's y_i at all coordinates, although a round covers only some."""
    training = trained(
        build(config("hist", local="fadamgc", lr=0.01, edge_rounds=2), data=toy, model=model()), 5
    )
    terms = torch.stack([training.server.states.get("tracking", client) for client in range(6)])
    assert torch.allclose(
        training.server.nodes["tracking"], terms.view(3, 2, -1).mean(1), atol=1e-6
    )
    assert not torch.allclose(
        training.server.nodes["tracking"][0], training.server.nodes["tracking"][1], atol=1e-3
    )


def test_second_moments_of_local_biases_are_kept(config, toy):
    """For hidden biases, which are never sent, y_i stays zero but v_i does not."""
    settings = config("hist", local="fadamgc", hidden_biases="local", lr=0.01)
    training = trained(build(settings, data=toy, model=model()), 2)
    spec = training.spec
    for client in range(6):
        biases = (
            spec.views(training.server.states.get(name, client))["layers.1.bias"]
            for name in ("tracking", "second")
        )
        tracking, second = biases
        assert not tracking.any()
        assert second.any()


def test_all_tracking_algorithms_use_the_same_units():
    """The unit is lr for the model's change and 1/K for the change of y_i."""
    for name in ("fadamgc", "fa-nt", "scaffold", "scaffold-m"):
        algorithm = find_algorithm(name)(lr=0.2)
        units = {p.name: p.unit_of(algorithm, 20) for p in algorithm.payloads}
        assert units == {"update": 0.2, "tracking": 0.05}, name


@pytest.mark.thorough
def test_air_errors_are_reported_per_payload(config, toy):
    """With one tracking client, the two cells without one do not count as error-free."""
    flags = {"rounds": 30, "edge_rounds": 1, "lr": 0.01, "uplink": "aircomp"}
    flags["beamformer"] = "random"
    rows = {
        trackers: wirelessfl.run(
            config("hist", local="fadamgc", tracking_clients=trackers, **flags),
            data=toy,
            model=model(),
        ).rows[1:]
        for trackers in (1, 6)
    }
    for own in rows.values():
        assert all(row["air_error"] > 0 and row["air_error_tracking"] > 0 for row in own)
    one, six = (sum(r["air_error_tracking_predicted"] for r in rows[n]) for n in (1, 6))
    assert one > 0.5 * six
    again = wirelessfl.run(config("fedavg", rounds=1, uplink="aircomp"), data=toy).rows
    assert "air_error_tracking" not in again[1]


def test_settings_of_outer_and_inner_algorithm_are_flags(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["run", "hist", "--local", "fadamgc", "--help"])
    text = capsys.readouterr().out
    for flag in ("--beta2 X", "--mask-sizes", "--server-lr X", "--vhat", "--tracking-clients N"):
        assert flag in text
    assert "[0.001]" in text, "default lr of the inner algorithm"
    words = "run hist --local fadamgc --beta2 0 --dataset digits --clients 8 --rounds 1 --json"
    words += f" --cells 2 --edge-rounds 1 --local-steps 2 --out {tmp_path / 'run'}"
    assert main(words.split()) == 0
    stored = Config.from_toml(tmp_path / "run" / "config.toml")
    assert stored.algorithm == Hist(local=FAdamGC(beta2=0.0))
    assert stored.tables["algorithm"]["local"] == "fadamgc"
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "name = hist, local = fadamgc, beta2 = 0" in capsys.readouterr().out


def test_an_algorithm_with_cells_cannot_define_rules():
    """The run would ignore them; what the cloud does is its own."""
    with pytest.raises(ConfigError, match=r"defines merge, which would be ignored: .* --local"):
        type("Own", (HFedAvg,), {"merge": lambda self, server, received: server})
    own = type("Own", (HFedAvg,), {"combine": lambda self, *given: {}, "__module__": __name__})
    assert own(local=FedAvg(lr=0.5)).lr == 0.5


def test_a_combined_algorithm_can_be_pickled():
    algorithm = Config.from_flags("hist", local="fadamgc", beta1=0.5).algorithm
    again = pickle.loads(pickle.dumps(algorithm))
    assert again == algorithm
    assert hash(again) == hash(algorithm)
    assert {"lr", "beta1", "size_cap", "local"} <= again.all_settings().keys()


class Own(Algorithm):
    """An algorithm that is not derived from FedAvg, with half its step at the server."""

    def send(self, params, state, cohort):
        return {"update": params - cohort.start}

    def merge(self, server, received):
        return {"params": server["params"] + 0.5 * received.mean["update"]}


class Even(FedAvg):
    """An algorithm that refuses a step size of its own."""

    def __post_init__(self):
        super().__post_init__()
        if self.lr > 1:
            raise ValueError(f"lr is {self.lr}: give at most 1")


@pytest.mark.parametrize("outer", ["hist", "hfedavg"])
def test_checks_of_the_inner_algorithm_are_made(outer):
    with pytest.raises(ConfigError, match="give at most 1"):
        Config.from_flags(outer, local=f"{__name__}:Even", lr=2.0)


@pytest.mark.parametrize("outer", ["hist", "hfedavg"])
def test_any_algorithm_with_one_server_runs_in_cells(config, toy, outer):
    """One that is not derived from FedAvg equals FedAvg with its server step size."""
    flags = {"rounds": 3, "lr": 0.05}
    own = wirelessfl.run(config(outer, local=f"{__name__}:Own", **flags), data=toy, model=model())
    same = wirelessfl.run(config(outer, server_lr=0.5, **flags), data=toy, model=model())
    assert torch.equal(flat(own), flat(same))
