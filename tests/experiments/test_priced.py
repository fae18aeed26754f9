"""Train once, price many: priced rows are those of a run that is trained over the other radio."""

import pytest

import wirelessfl
from experiments.priced import over, priced
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.pricing.radio import BLIND, dependences

SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 1, "hidden": (8,), "clients": 6}
CELLS = SMALL | {"cells": 2, "edge_rounds": 2}
OPTIMAL = {"name": "ofdma", "allocation": "optimal"}
READY = {"name": "tdma", "order": "ready"}


def flags_of(table):
    return {"uplink": table["name"]} | {k: v for k, v in table.items() if k != "name"}


def trained(out, algorithm="hist", base=CELLS, **flags):
    config = Config.from_flags(algorithm, **(base | flags), threads=1, out=out)
    return StoredRun.of(wirelessfl.run(config))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run over time division, the uplink of the paper."""
    return trained(tmp_path_factory.mktemp("runs") / "slots", snr_db=5.0)


@pytest.mark.parametrize("uplink", [OPTIMAL, READY], ids=["bands", "order"])
def test_priced_rows_are_those_of_a_run_over_the_other_uplink(run, uplink, tmp_path):
    """Accuracies, seconds, joules and traffic, to the bit."""
    other = trained(tmp_path / "run", snr_db=5.0, **flags_of(uplink))
    found = priced(run, uplink=uplink)
    assert found.rows == other.rows
    assert found.rows != run.rows
    assert found.settings["uplink"] == uplink
    free = priced(run, joules=False, uplink=uplink)
    assert [row["sim_seconds"] for row in free.rows] == [row["sim_seconds"] for row in other.rows]
    assert "joules" not in free.rows[-1]


def test_another_network_has_a_price(run, tmp_path):
    other = trained(tmp_path / "run", snr_db=-5.0, antennas=4)
    assert priced(run, network={"snr_db": -5.0, "antennas": 4}).rows == other.rows


@pytest.mark.parametrize("select", BLIND)
def test_participants_that_do_not_depend_on_the_radio_have_a_price(select, tmp_path):
    some = {"base": SMALL, "algorithm": "fedavg", "clients_per_round": 3, "select": select}
    runs = [trained(tmp_path / name, **some, uplink=name) for name in ("tdma", "ofdma")]
    assert priced(runs[0], uplink={"name": "ofdma"}).rows == runs[1].rows


@pytest.mark.parametrize(
    ("algorithm", "flags", "name"),
    [
        ("hist", CELLS | {"uplink": "aircomp"}, "uplink=aircomp"),
        ("hist", CELLS | {"mask_sizes": "optimized"}, "mask_sizes=optimized"),
        (
            "ra-fed",
            SMALL | {"masks": "covered", "budget": "fastest", "min_coverage": 2},
            "budget=fastest",
        ),
        ("fedavg", SMALL | {"failures": "outage"}, "failures=outage"),
        ("fedavg", SMALL | {"max_seconds": 1.0}, "max_seconds=1"),
        (
            "fedavg",
            SMALL | {"uplink": "ofdma", "round_deadline": 1.0, "late": "lost"},
            "late=lost",
        ),
        ("fedavg", SMALL | {"client_joules": 2.5}, "client_joules=2.5"),
        ("fedavg", SMALL | {"clients_per_round": 3, "select": "soonest"}, "select=soonest"),
        ("fedavg", SMALL | {"clients_per_round": 3, "select": "age"}, "select=age"),
        ("hfedavg", CELLS | {"schedule": "buffered", "buffer": 1}, "schedule=buffered"),
    ],
)
def test_what_depends_on_the_radio_is_named(algorithm, flags, name):
    (reason,) = dependences(Config.from_flags(algorithm, **flags))
    assert reason.startswith(f"{name}: ")


def test_runs_that_depend_on_the_radio_are_refused(run):
    with pytest.raises(ConfigError, match=r"depends on it: uplink=aircomp: .*Train it there"):
        priced(run, uplink={"name": "aircomp"})
    with pytest.raises(ConfigError, match=r"algorithm does not belong to the radio: choose from"):
        priced(run, algorithm={"name": "fedavg"})
    with pytest.raises(ConfigError, match=r"clients=3 changes the training"):
        priced(run, network={"clients": 3})


def test_other_participants_are_found_by_their_traffic(run):
    """An undeclared dependence changes the traffic, and is refused."""
    run.rows[1]["uplink_mib"] *= 2
    try:
        with pytest.raises(ConfigError, match=r"uplink_mib after round 1 .* submodels differ"):
            priced(run, uplink=READY)
    finally:
        run.rows[1]["uplink_mib"] /= 2


def test_the_uplink_of_a_configuration_is_replaced_as_a_whole():
    config = Config.from_flags("hist", **CELLS, uplink="tdma", order="ready")
    assert over(config, uplink={"name": "ofdma"}).uplink.allocation == "equal"
