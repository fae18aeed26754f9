"""Rates of modulation and coding in runs: prices, budgets and refusals."""

import numpy as np
import pytest

import wirelessfl
from channels import spectral_efficiency
from wirelessfl.base.errors import ConfigError
from wirelessfl.runs.build import build

BASE = {"clients": 4, "cells": 2, "rounds": 2, "edge_rounds": 1, "dataset": "digits"}


def test_a_price_has_the_seconds_of_the_table():
    """The slowest upload of the round, from the channels of its plan."""
    config = wirelessfl.Config.from_flags(
        "hfedavg", uplink="tdma", rates="mcs", cpu_hz=(1e12, 1e12), snr_db=2.0, **BASE
    )
    priced = wirelessfl.price(config)
    planner = build(config, trained=False).planner
    for number in range(2):
        plan = planner.plan(number)
        draws, load = plan.draws, plan.price.served.load
        network = draws.network
        rate = network.bandwidth_hz[network.cell_of] * spectral_efficiency(
            draws.snr * draws.gain, "mcs"
        )
        ends = load.ready_seconds(network) + 2 * load.bits / rate
        assert priced.seconds[number] == pytest.approx(ends.max(), rel=1e-12)


@pytest.mark.parametrize(
    "uplink", [{"uplink": "tdma"}, {"uplink": "tdma", "order": "ready"}, {"uplink": "ofdma"}]
)
def test_capacity_is_faster_and_the_default(uplink):
    names = (None, "shannon", "mcs")
    none, shannon, mcs = (
        wirelessfl.price(wirelessfl.Config.from_flags("hfedavg", rates=name, **uplink, **BASE))
        for name in names
    )
    assert (none.seconds == shannon.seconds).all()
    assert (mcs.seconds > shannon.seconds).all()
    assert (mcs.joules > shannon.joules).all()


def test_many_networks_have_the_same_rates():
    from channels import Stream, section_vi_c

    networks = [section_vi_c(cells=2, clients=4, stream=Stream(seed)) for seed in (1, 2)]
    config = wirelessfl.Config.from_flags(
        "hfedavg", uplink="ofdma", rates="mcs", rounds=2, dataset="digits"
    )
    together = wirelessfl.price(config, network=networks)
    for number, network in enumerate(networks):
        alone = wirelessfl.price(config, network=network)
        np.testing.assert_allclose(np.diff(together.seconds[number]), alone.seconds, rtol=1e-9)


def test_options_compare_at_the_same_rates():
    """Slots and bands have the rates of the table; accesses with solvers say why they do not."""
    options = wirelessfl.plan(
        wirelessfl.Config.from_flags("hfedavg", uplink="ofdma", rates="mcs", **BASE), rounds=1
    )
    by_title = {option.title: option for option in options}
    slots = wirelessfl.price(
        wirelessfl.Config.from_flags("hfedavg", uplink="tdma", rates="mcs", **BASE), rounds=1
    )
    assert by_title["time slots"].seconds == pytest.approx(slots.seconds[0])
    assert "Shannon" in by_title["optimal bands"].reason


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"uplink": "ofdma", "allocation": "optimal"}, "solvers take Shannon's formula"),
        ({"uplink": "ofdma", "round_deadline": 9.0}, "solvers take Shannon's formula"),
        ({"uplink": "ofdma", "energy_weight": 0.1}, "solvers take Shannon's formula"),
        ({"uplink": "tdma", "failures": "outage"}, 'conflicts with failures="outage"'),
        ({"uplink": "aircomp"}, 'a setting of uplink "ofdma" or "tdma"'),
    ],
)
def test_what_needs_capacity_is_refused(flags, message):
    with pytest.raises(ConfigError, match=message):
        wirelessfl.Config.from_flags("hfedavg", rates="mcs", **flags, **BASE)


def test_designs_refuse_the_table():
    config = wirelessfl.Config.from_flags("hfedavg", uplink="tdma", rates="mcs", target=0.5, **BASE)
    with pytest.raises(ConfigError, match="conflicts with a design"):
        wirelessfl.design(config)
