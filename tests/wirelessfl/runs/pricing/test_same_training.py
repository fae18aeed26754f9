"""Why a run has no price over another radio: each reason alone, and what carries costs over."""

from dataclasses import dataclass

import pytest

from channels import Network
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.algorithms.assigners.ordered import Nested
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.warm_starts.past import Previous
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.rounds.redesign import Redesign
from wirelessfl.engine.schedules.rounds import Rounds
from wirelessfl.engine.sessions.presence import Labels
from wirelessfl.runs.build.configured import configured
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.pricing.radio import (
    RELATIVE,
    check_cells,
    check_independent,
    dependences,
    of_radio,
    own_network,
    with_costs,
)

SMALL = {"dataset": "digits", "clients": 4, "hidden": (8,), "rounds": 2}
CELLS = {"cells": 2}
WIDTHS = {"assigner": "covered", "capacities": (0.5,)}
REASONS = [
    ("fedavg", {}, []),
    ("fedavg", {"uplink": "ofdma", "round_deadline": 1.0}, []),
    ("fedavg", {"uplink": "ofdma", "round_deadline": 1.0, "late": "lost"}, ["late=lost"]),
    ("fedavg", {"uplink": "aircomp"}, ["uplink=aircomp"]),
    ("fedavg", {"failures": "waterfall"}, ["failures=waterfall"]),
    ("fedavg", {"failures": "none"}, []),
    ("hfedavg", CELLS, []),
    ("hfedavg", CELLS | {"schedule": "buffered", "buffer": 1}, ["schedule=buffered"]),
    ("hist", CELLS | {"mask_sizes": "uniform"}, []),
    ("hist", CELLS | {"mask_sizes": "fixed", "mask_shares": (0.5, 0.5)}, []),
    ("hist", CELLS | {"mask_sizes": "optimized"}, ["mask_sizes=optimized"]),
    ("fedavg", WIDTHS, []),
    ("fedavg", WIDTHS | {"budget": "bytes"}, []),
    ("fedavg", {"assigner": "covered", "budget": "deadline", "deadline": 1.0}, ["budget=deadline"]),
    ("fedavg", {"assigner": "covered", "budget": "fastest", "min_coverage": 1}, ["budget=fastest"]),
    ("hfedavg", CELLS | {"local": "ra-fed", "budget": "fastest", "min_coverage": 1},
     ["budget=fastest"]),
    ("fedavg", {"clients_per_round": 2}, []),
    ("fedavg", {"clients_per_round": 2, "select": "round-robin"}, []),
    ("fedavg", {"clients_per_round": 2, "select": "best-channel"}, ["select=best-channel"]),
    ("fedavg", {"clients_per_round": 2, "select": "soonest"}, ["select=soonest"]),
    ("fedavg", {"clients_per_round": 2, "select": "power-of-choice"}, ["select=power-of-choice"]),
    ("fedavg", {"max_seconds": 9.0}, ["max_seconds=9"]),
    ("fedavg", {"client_joules": 0.5}, ["client_joules=0.5"]),
    ("fedavg", {"cutoff_seconds": 0.2}, ["cutoff_seconds=0.2"]),
    ("fedavg", {"client_log": True}, ["client_log: "]),
    ("fedavg", {"keep_best": True}, ["keep_best: "]),
    ("fedavg", {"track": "tensorboard"}, ["track: "]),
    ("fedavg", {"monitor": "loss"}, []),
    ("hfedavg", {"cells": 2, "layout": "disc", "mobility": "waypoint", "handover": "strongest"},
     ["handover=strongest"]),
    ("fedavg", {"monitor": "joules"}, ["monitor=joules"]),
    ("fedavg", {"monitor": "sim_seconds"}, ["monitor=sim_seconds"]),
    ("fedavg", {"monitor": "uplink_mib", "cutoff_seconds": 2.0},
     ["cutoff_seconds=2", "monitor=uplink_mib"]),
    ("fedavg", {"sessions": 2}, []),
    ("fedavg", {"sessions": 2, "presence": "arrivals", "presence_unit": "rounds",
                "arrival_rate": 2.0, "mean_stay": 2.0}, []),
    ("fedavg", {"sessions": 2, "presence": "arrivals", "presence_unit": "seconds",
                "arrival_rate": 2.0, "mean_stay": 2.0}, ["presence_unit=seconds"]),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "flags", "reasons"), REASONS)
def test_each_dependence_on_the_radio_is_a_reason(algorithm, flags, reasons):
    config = Config.from_flags(algorithm, **(SMALL | flags))
    found = list(dependences(config))
    assert len(found) == len(reasons)
    assert all(text.startswith(reason) for text, reason in zip(found, reasons, strict=True))
    if not reasons:
        check_independent(config)
        return
    with pytest.raises(ConfigError, match=rf"depends on it: {reasons[0]}.*Train it there"):
        check_independent(config)


@dataclass(frozen=True)
class OwnLink(Tdma):
    name = "own-link"


@dataclass(frozen=True)
class OwnRounds(Rounds):
    name = "own-rounds"


@dataclass(frozen=True)
class OwnPresence(Labels):
    name = "own-presence"


@dataclass(frozen=True)
class OwnStart(Previous):
    name = "own-start"


@dataclass(frozen=True)
class OwnWidths(Nested):
    name = "own-widths"

    def client_submodels(self, context):
        return super().client_submodels(context)


@dataclass(frozen=True)
class OwnMasks(Nested):
    """Its submodels are built-in ones."""

    name = "own-masks"


@dataclass(frozen=True)
class OwnAlgorithm(Assigner, FedAvg):
    name = "own-algorithm"

    def submodels(self, context):
        return super().submodels(context)


@pytest.mark.parametrize(
    ("algorithm", "flags", "reason"),
    [
        ("fedavg", {"uplink": f"{__name__}:OwnLink"}, "uplink=.*OwnLink: a class of your own"),
        ("fedavg", {"schedule": f"{__name__}:OwnRounds"}, "schedule=.*OwnRounds: a class of your"),
        ("fedavg", {"sessions": 2, "presence": f"{__name__}:OwnPresence"}, "presence=.*OwnPres"),
        ("fedavg", {"sessions": 2, "warm_start": f"{__name__}:OwnStart"}, "warm_start=.*OwnStart"),
        ("fedavg", {"assigner": f"{__name__}:OwnWidths"}, "OwnWidths: its client_submodels may"),
        ("fedavg", {"assigner": f"{__name__}:OwnMasks"}, None),
        (f"{__name__}:OwnAlgorithm", {}, "OwnAlgorithm: its submodels may depend on seconds"),
    ],
)
def test_classes_of_the_user_that_may_see_seconds_are_reasons(algorithm, flags, reason):
    config = Config.from_flags(algorithm, **(SMALL | flags))
    if reason is None:
        check_independent(config)
        return
    with pytest.raises(ConfigError, match=f"depends on it: .*{reason}"):
        check_independent(config)


class OwnRedesign(Redesign):
    """Changes nothing."""

    every = 1

    def decide(self, run):
        return run.settings


def test_a_redesign_sees_seconds():
    config = Config.from_flags("fedavg", **SMALL)
    given = GivenObjects(redesign=OwnRedesign())
    with pytest.raises(ConfigError, match=r"redesign=.*decides from rows"):
        check_independent(configured(config, given))


@pytest.mark.parametrize(
    ("section", "key", "expected"),
    [
        ("network", "snr_db", True),
        ("network", "backhaul_mbps", True),
        ("network", "step_seconds", True),
        ("network", "clients", False),
        ("network", "cells", False),
        ("uplink", "name", True),
        ("fading", "name", True),
        ("failures", "name", True),
        ("training", "rounds", False),
        ("run", "seed", False),
        ("algorithm", "lr", False),
    ],
)
def test_which_settings_are_those_of_the_radio(section, key, expected):
    assert of_radio(section, key) == expected


COUNTED = ("uplink_mib", "downlink_mib", "backhaul_mib", "lost", "silent")
TRAFFIC = dict.fromkeys(COUNTED, 3.0)


def test_rows_take_the_costs_of_their_round():
    """Those of the first price of a round: later ones have trial rounds of the next session."""
    rows = [
        {"session": s, "session_round": r, "round": n, "sim_seconds": 9.0, "joules": 1.0}
        | TRAFFIC
        | {"joules_max": 2.0}
        | {"accuracy": 0.1 * n, "extra_seconds": 5.0, "equal_joules": 7.0, "wall_seconds": 2.5}
        for n, (s, r) in enumerate([(0, 0), (0, 1), (1, 0)])
    ]
    prices = [
        {"session": s, "session_round": r, "round": n, "sim_seconds": 10.0 * n}
        | TRAFFIC
        | {"extra_seconds": 0.5 * n}
        for n, (s, r) in [(0, (0, 0)), (1, (0, 1)), (2, (1, 0)), (1, (0, 1))]
    ]
    prices[-1] = prices[-1] | {"sim_seconds": 99.0}
    found = with_costs(rows, prices)
    for n, row in enumerate(found):
        assert row == {
            "session": n // 2, "session_round": n % 2, "round": n, "sim_seconds": 10.0 * n,
            **TRAFFIC, "accuracy": 0.1 * n, "extra_seconds": 0.5 * n, "wall_seconds": 2.5,
        }  # fmt: skip
        assert [*row][-3:] == ["accuracy", "extra_seconds", "wall_seconds"]
    with pytest.raises(ConfigError, match="round 1 has no price over the other radio"):
        with_costs(rows, [*prices[:1], *prices[2:3]])


@pytest.mark.parametrize("name", COUNTED)
def test_other_traffic_or_losses_are_another_training(name):
    """Up to rounding, relative to the run."""
    row = {"round": 4, "sim_seconds": 1.0} | TRAFFIC
    with_costs([row], [row | {name: 3.0 * (1 + 0.9 * RELATIVE)}])
    for other in (3.0 * (1 + 1.1 * RELATIVE), 3.0 * (1 - 1.1 * RELATIVE)):
        with pytest.raises(ConfigError, match=f"{name} after round 4 is 3.0, and .* differ"):
            with_costs([row], [row | {name: other}])


def test_clients_stay_in_their_cells():
    config = Config.from_flags("hfedavg", **SMALL, **CELLS)
    here = own_network(config)
    assert here.cell_of.tolist() == [0, 0, 1, 1]
    check_cells(here, Network.from_snr([0, 0, 1, 1], cpu_hz=1e9, snr_db=3.0))
    for cells in ([0, 1, 1, 1], [0, 0, 1]):
        with pytest.raises(ConfigError, match="over mine, clients are in other cells"):
            check_cells(here, Network.from_snr(cells, cpu_hz=1e9, snr_db=3.0), "over mine")
