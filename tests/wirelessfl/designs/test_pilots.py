"""Pilots: which settings they have, and that they are trained once and without a radio."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import wirelessfl
from channels import Network
from tests.wirelessfl.designs.own import undeclared
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import path_of
from wirelessfl.config import Config
from wirelessfl.designs.pilot_plan import PilotRequest, planned
from wirelessfl.designs.points import (
    EDGE_ROUNDS,
    LOCAL_STEPS,
    PilotChoices,
    Point,
    chosen_points,
    levels,
    ramp,
)
from wirelessfl.runs.build.configured import configured
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.kept import kept_folder

GRID = PilotChoices(levels(*LOCAL_STEPS), levels(*EDGE_ROUNDS))
SMALL = {"cells": 2, "clients": 4, "hidden": (6,), "batch_size": 8, "threads": 1}
SMALL_CELL = {"clients": 4, "hidden": (6,), "batch_size": 8, "threads": 1}
FEW = {"local_steps": [1, 3], "edge_rounds": [1, 2], "steps": 12}


def config(algorithm="hist", **flags):
    return Config.from_flags(algorithm, **(SMALL | flags))


def log_det(points):
    """log det(X'X) of relative errors of a0/(H E) + a1 + a2 H + a3 E, written out."""
    h_mean, e_mean = np.sqrt(2 * 40), np.sqrt(1 * 10)
    rows = []
    for h, e in points:
        terms = [h_mean * e_mean / (h * e), 1, h / h_mean, e / e_mean]
        rows.append(np.array(terms) / sum(terms))
    return np.linalg.slogdet(np.array(rows).T @ np.array(rows))[1]


def test_pilots_are_nearly_the_most_informative_of_all_sets():
    """D-efficiency of 90 % and more against the best of all sets of 4, 5 and 6 pilots."""
    few = PilotChoices((2, 5, 12, 40), (1, 3, 10))
    grid = list(itertools.product(few.local_steps, few.edge_rounds))
    for count in (4, 5, 6):
        found = [point[:2] for point in chosen_points(few, count)]
        best = max(log_det(points) for points in itertools.combinations(grid, count))
        assert len(set(found)) == count
        assert np.exp((log_det(found) - best) / 4) > 0.9
    random = np.random.default_rng(1)
    sets = [random.choice(len(grid), 6, replace=False) for _ in range(200)]
    assert np.mean([log_det(found) > log_det([grid[i] for i in chosen]) for chosen in sets]) > 0.95
    eight = [point[:2] for point in chosen_points(GRID, 8)]
    assert {(2, 1), (40, 1), (40, 10)} < set(eight)


def test_further_pilots_and_factors_add_to_the_others():
    """The pilots of a design without a factor are among those with it."""
    eight = chosen_points(GRID, 8)
    assert chosen_points(GRID, 10)[:8] == eight
    assert chosen_points(PilotChoices((1, 2), (1, 2)), 8) == chosen_points(
        PilotChoices((1, 2), (1, 2)), 4
    )
    shares = ramp(4, 1.5)
    more = chosen_points(GRID._replace(shares=(shares,), snr_db=(0.0, 10.0)), 8)
    assert more[:8] == eight
    assert [point.shares for point in more[8:]] == [shares, shares, None, None]
    assert [point.snr_db for point in more[8:]] == [None, None, 10.0, 0.0]
    fewer = chosen_points(GRID._replace(clients=(10, 60, 30)), 8)
    assert [point._replace(clients=None) for point in fewer[:8]] == eight
    assert [point.clients for point in fewer] == [60] * 8 + [30, 10]
    assert len({*more, *fewer}) == 8 + 4 + 10
    assert sum(shares) == pytest.approx(1)
    assert Point(1, 1, shares=shares).largest == pytest.approx(1.5)
    assert Point(1, 1, snr_db=10.0).noise == pytest.approx(0.1)


def test_settings_of_pilots():
    """Rounds from H and E, about 100 evaluations, up to the target, with validation data."""
    plan = planned(config(target=0.5, uplink="aircomp", mask_sizes="optimized", rounds=7))
    for point, own in zip(plan.points, plan.configs, strict=True):
        steps = point.local_steps * point.edge_rounds
        training, evaluation = own.training, own.evaluation
        assert (training.local_steps, training.edge_rounds) == point[:2]
        assert training.rounds == max(-(-4000 // steps), 5)
        assert evaluation.eval_every == max(training.rounds // 400, 1)
        assert (evaluation.target, evaluation.stop_at_target) == (0.5, True)
        assert own.data.validation_fraction == 0.1
        assert (own.named("uplink"), own.algorithm.mask_sizes) == ("tdma", "uniform")
    held = planned(config(validation_fraction=0.3)).configs[0]
    assert held.data.validation_fraction == 0.3
    assert not held.evaluation.stop_at_target


@pytest.mark.parametrize(
    "radio",
    [
        {"uplink": "ofdma", "allocation": "optimal", "snr_db": 3.0, "cpu_hz": (1e8, 2e8)},
        {"layout": "disc", "path_loss": "uma", "backhaul_mbps": 3.0, "uplink": "aircomp"},
        {"network": "tests.gate.given:one_cell", "clients": None},
    ],
)
def test_pilots_are_the_same_runs_for_all_networks(radio, tmp_path):
    """Names do not depend on the radio, as long as the cells have the same clients."""
    flags = {name: value for name, value in (SMALL | radio).items() if value is not None}
    if "network" in radio:
        del flags["cells"]
    there = Config.from_flags("hist", **flags)
    size = {"cells": there.network.cells, "clients": there.network.clients}
    here = config(**size)
    folders = [
        [kept_folder(own, tmp_path) for own in planned(one).configs] for one in (here, there)
    ]
    assert folders[0] == folders[1]


@pytest.mark.thorough
def test_other_cells_are_other_pilots(tmp_path):
    """A network whose cells have other clients is kept; training is that of the run."""
    network = Network.from_snr([0, 1, 1, 1], cpu_hz=1e9, snr_db=10)
    even = Network.from_snr([0, 0, 1, 1], cpu_hz=1e9, snr_db=10)
    plain = Config.from_flags("hist", hidden=(6,), batch_size=8, threads=1)
    assert not planned(plain, network=network).plain
    assert planned(plain, network=even).plain
    pilots = wirelessfl.pilot(plain, network=network, root=tmp_path / "own", **FEW)
    same = wirelessfl.pilot(config(), root=tmp_path / "same", **FEW)
    given = wirelessfl.pilot(plain, network=even, root=tmp_path / "same", **FEW)
    assert given.trained == 0
    assert [r.rows for r in given.results] == [r.rows for r in same.results]
    for point, result, other in zip(pilots.points, pilots.results, same.results, strict=True):
        own = wirelessfl.run(
            Config.from_flags(
                "hist",
                hidden=(6,),
                batch_size=8,
                threads=1,
                validation_fraction=0.1,
                local_steps=point.local_steps,
                edge_rounds=point.edge_rounds,
                rounds=result.rows[-1]["round"],
                out=tmp_path / f"run{point.local_steps}{point.edge_rounds}",
            ),
            network=network,
        )
        assert [row["loss"] for row in own.rows] == [row["loss"] for row in result.rows]
        assert [row["loss"] for row in own.rows] != [row["loss"] for row in other.rows]
        break


def test_pilots_are_trained_once_and_fitted(tmp_path):
    """Read pilots have their wall seconds; a masked and a smaller cohort train beside them."""
    rows, found = [], []
    first = wirelessfl.pilot(config(), root=tmp_path, count=3, **FEW)
    again = wirelessfl.pilot(
        config(),
        root=tmp_path,
        masks=True,
        clients=[2, 4],
        on_row=lambda place, row: rows.append(place),
        on_found=lambda *places: found.extend(places),
        **FEW,
    )
    assert (first.trained, first.kept, len(first)) == (3, 0, 3)
    assert (again.trained, again.kept, len(again)) == (5, 3, 8)
    assert found == [[0, 1, 2], [3, 4, 5, 6, 7]]
    assert {*rows} == {3, 4, 5, 6, 7}
    assert [r.rows for r in again.results[:3]] == [r.rows for r in first.results]
    seconds = [result.rows[-1]["wall_seconds"] for result in again.results]
    assert again.wall_seconds == pytest.approx(sum(seconds)) != 0
    assert [row["clients"] for row in again.rows()] == [4, 4, 4, 4, 2, 2, 4, 4]
    assert [row["largest"] for row in again.rows()] == [1] * 6 + [1.5] * 2
    assert [r.config.training.clients_per_round for r in again.results[3:6]] == [None, 2, 2]


@pytest.mark.thorough
def test_each_number_of_bits_has_pilots_of_its_own(tmp_path):
    """A design trains those of both alternatives, with their compression, and reads them again."""
    names = ("fedavg", "fedavg+uplink_compression=quantisation+uplink_compression_bits=1")
    few = {
        "local_steps": [2, 6, 20],
        "pilots": 3,
        "pilot_steps": 60,
        "draws": 2,
        "uplinks": ["tdma"],
    }
    study = {"among": names, "root": tmp_path, **few}
    plain = Config.from_flags("fedavg", target=0.3, lr=0.1, bandwidth_hz=1e4, **SMALL_CELL)
    best = wirelessfl.design(plain, **study).value
    assert best.choice.family.algorithm == names[1]
    assert best.config.uplink_compression.compression_bits == 1
    kept = wirelessfl.load_all(tmp_path)
    bits = [getattr(run.config.uplink_compression, "compression_bits", 32) for run in kept]
    assert sorted(bits) == [1, 1, 1, 32, 32, 32]
    again = wirelessfl.design(plain, **study).value
    assert again.config == best.config
    seconds = [[row["wall_seconds"] for row in run.rows] for run in kept]
    assert [[row["wall_seconds"] for row in run.rows] for run in wirelessfl.load_all(tmp_path)] == (
        seconds
    ), "the kept pilots are read"


@pytest.fixture
def fits(monkeypatch):
    """The arguments of fits, which are not made."""
    found = []
    monkeypatch.setattr(
        "wirelessfl.designs.fit.fit_rounds",
        lambda *arguments, **options: found.append((*arguments, options)),
    )
    return found


def test_the_curve_of_a_target_contains_it(fits, tmp_path):
    """Pilots end at the first evaluation that reaches the target; the fit ends there, too."""
    pilots = wirelessfl.pilot(
        config("hfedavg", target=0.25, lr=0.1), root=tmp_path, **(FEW | {"steps": 60})
    )
    reached = [result.rows[-1]["validation_accuracy"] >= 0.25 for result in pilots.results]
    assert sum(reached) >= 3
    for result in pilots.results:
        assert all(row["validation_accuracy"] < 0.25 for row in result.rows[:-1])
    pilots.curve(bootstrap=0)
    pilots.curve([0.2])
    assert [options for _, _, options in fits] == [{"bootstrap": 0}, {}]
    assert fits[0][1][-1] == 0.25
    assert {*fits[0][1][:-1]} <= {0.25 * share for share in (0.85, 0.9, 0.95)}
    assert fits[1][1] == [0.2]
    for found, point, result in zip(fits[0][0], pilots.points, pilots.results, strict=True):
        assert found.settings == (*point[:2], 4.0, 1.0, 0.0)
        assert found.rounds.tolist() == [row["round"] for row in result.rows]
        assert found.scores.tolist() == [row["validation_accuracy"] for row in result.rows]


def test_over_the_air_pilots_have_the_settings_of_the_radio(tmp_path):
    """Their names depend on the network, and their noise is 1/SNR."""
    radio = {"uplink": "aircomp", "convention": "mmse"}
    over_the_air = PilotRequest(snr_db=[5.0], **FEW)
    plan = planned(config(**radio), over_the_air)
    assert [point.noise for point in plan.points[4:]] == [10**-0.5] * 2
    for own in plan.configs[4:]:
        assert own.uplink.convention == "mmse"
        assert own.network.snr_db == 5.0
    other = planned(config(antennas=4, **radio), over_the_air)
    folders = [[kept_folder(c, tmp_path) for c in p.configs] for p in (plan, other)]
    assert folders[0][:4] == folders[1][:4]
    assert not {*folders[0][4:]} & {*folders[1][4:]}
    assert planned(config(), over_the_air).configs[4].uplink.name == "aircomp"


def test_given_objects_train_and_are_kept(tmp_path):
    """A model and data of the user; the model keeps its weights, and other objects train anew."""
    torch.manual_seed(1)
    inputs, labels = torch.randn(60, 5), torch.arange(60) % 3
    data = (inputs[:48], labels[:48], inputs[48:], labels[48:])
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    own = Config.from_flags("fedavg", clients=4, threads=1, batch_size=4)
    star = {"local_steps": [1, 2, 3], "steps": 6, "root": tmp_path}
    first = wirelessfl.pilot(own, model=model, data=data, **star)
    assert (first.trained, first.kept) == (3, 0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = wirelessfl.pilot(own, model=model, data=data, **star)
    assert (again.trained, again.kept) == (0, 3)
    assert [r.rows for r in again.results] == [r.rows for r in first.results]
    marked = configured(own, GivenObjects.of(wirelessfl.run, {"model": model, "data": data}))
    assert wirelessfl.pilot(marked, model=model, data=data, **star).trained == 0
    with pytest.raises(ConfigError, match=r"give model=\.\.\., data=\.\.\. again from Python"):
        wirelessfl.pilot(marked, **star)
    other = (inputs[:48] * 2, *data[1:])
    assert wirelessfl.pilot(own, model=model, data=other, **star).trained == 3
    with torch.no_grad():
        model[0].bias += 1
    assert wirelessfl.pilot(own, model=model, data=data, **star).trained == 3
    with pytest.raises(ConfigError, match=r"jobs=2 conflicts with model=\.\.\., data=\.\.\."):
        wirelessfl.pilot(own, model=model, data=data, jobs=2, **star)


@pytest.mark.parametrize("among", [None, ["hfedavg", "hist"]])
def test_a_model_that_cannot_be_divided_is_refused_before_any_pilot(among, tmp_path):
    """Also if the pilots of another algorithm would come first; the message names the layers."""
    flags = {name: value for name, value in SMALL.items() if name != "hidden"}
    given = {"model": undeclared((1, 8, 8), 10)}
    for settings, objects in (({}, given), ({"model": path_of(undeclared)}, {})):
        own = Config.from_flags("hist", **flags, **settings)
        with pytest.raises(ConfigError, match=r"^model Sequential does .*--layers 1,3, or set"):
            wirelessfl.design(own, target=0.5, root=tmp_path / "pilots", among=among, **objects)
    assert not (tmp_path / "pilots").exists()


@pytest.mark.parametrize(
    ("flags", "arguments", "message"),
    [
        ({}, {"count": 2}, "number of pilots is 2: give a whole number >= 3"),
        ({}, {"count": 2.5}, r"number of pilots is 2\.5"),
        ({}, {"steps": 0}, "steps is 0"),
        ({}, {"jobs": 0}, "jobs is 0"),
        ({}, {"local_steps": [0, 1]}, "local_steps is 0: give a whole number >= 1"),
        ({}, {"local_steps": "12"}, "local_steps is '12': give a list of numbers"),
        ({}, {"edge_rounds": []}, "edge_rounds has no values"),
        ({}, {"local_steps": [2], "edge_rounds": [1, 2]}, "2 combinations, and a curve needs 3"),
        ({}, {"clients": [2, 5]}, "clients is 5, and the network has 4"),
        ({}, {"clients": [1, 4]}, "clients_per_round=1 conflicts with 4 clients in 2 cells"),
        ({}, {"snr_db": ["x"]}, "snr_db is 'x': give numbers in dB"),
        ({}, {"masks": [(0.5, 0.4)]}, r"mask_shares=\(0\.5, 0\.4\) has the sum 0\.9"),
        ({}, {"masks": [(1.0,)]}, r"conflicts with cells=2"),
        ({"algorithm": "hfedavg"}, {"masks": True}, 'conflict with algorithm "hfedavg"'),
        ({"algorithm": "fedavg", "cells": None}, {"edge_rounds": [1]}, "which is a star"),
        ({"max_seconds": 3.0}, {}, r"max_seconds=3: .* Leave it out for pilots"),
        ({"failures": "outage"}, {}, "failures=outage: the channels decide"),
        ({"select": "best-channel", "clients_per_round": 2}, {}, "select=best-channel"),
        ({"monitor": "loss"}, {}, "monitor=loss conflicts with pilots"),
        ({"local_epochs": 2.0}, {}, "local_epochs=2 conflicts with pilots"),
        ({"schedule": "buffered", "buffer": 2}, {}, "the settings have schedule 'buffered'"),
        ({"algorithm": "fedast", "cells": None}, {}, "the settings have schedule 'buffered'"),
        ({"algorithm": "fedavg", "cells": None, "sessions": 2}, {}, "the settings have sessions"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    flags, arguments, message, tmp_path
):
    given = {name: value for name, value in (SMALL | flags).items() if value is not None}
    own = Config.from_flags(given.pop("algorithm", "hist"), **given)
    with pytest.raises(ConfigError, match=message) as caught:
        wirelessfl.pilot(own, root=tmp_path / "pilots", **arguments)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "pilots").exists()
