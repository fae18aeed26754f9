"""Sources of energy against their moments and integrals, and batteries against a loop by hand."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from channels import Stream
from wirelessfl.air.batteries import Charges, EnergyLimits
from wirelessfl.air.recharge import ConstantRecharge, Harvest, NoRecharge, TraceRecharge
from wirelessfl.base.errors import ConfigError

MANY = np.arange(40_000)


def test_harvested_energy_has_the_moments_of_a_compound_poisson_process():
    """lambda m t and 2 lambda m^2 t, in intervals over several draws; 5 standard errors at most."""
    source = Harvest(packet_joules=0.3, packets_per_second=2.5)
    joules = source.joules(MANY, np.full(len(MANY), 0.7), 4.2, Stream(1))
    mean, variance = 2.5 * 0.3 * 3.5, 2 * 2.5 * 0.3**2 * 3.5
    assert abs(joules.mean() - mean) < 5 * np.sqrt(variance / len(MANY))
    # The fourth central moment of a compound Poisson sum: lambda t E X^4 + 3 variance^2.
    error = np.sqrt((2.5 * 3.5 * 24 * 0.3**4 + 2 * variance**2) / len(MANY))
    assert abs(joules.var() - variance) < 5 * error
    assert np.mean(joules == 0) == pytest.approx(np.exp(-2.5 * 3.5), abs=5e-4)


def test_packets_do_not_depend_on_when_they_are_counted():
    """Energies of parts add up, and those of some clients are those of all."""
    source, clients = Harvest(packets_per_second=3.0), np.arange(50)
    starts = np.linspace(0.0, 9.0, 50)
    whole = source.joules(clients, starts, 20.0, Stream(2))
    cuts = [9.0, 9.1, 13.3, 20.0]
    parts = [source.joules(clients, starts, cuts[0], Stream(2))]
    for before, after in itertools.pairwise(cuts):
        parts.append(source.joules(clients, np.full(50, before), after, Stream(2)))
    assert_allclose(np.sum(parts, 0), whole, rtol=1e-12)
    some = np.array([3, 17, 40])
    assert_array_equal(source.joules(some, starts[some], 20.0, Stream(2)), whole[some])
    assert source.joules(some, np.full(3, 5.0), 5.0, Stream(2)).tolist() == [0, 0, 0]


@pytest.fixture
def power(tmp_path):
    file = tmp_path / "power.csv"
    file.write_text("seconds, watts\n2, 1.5\n4,0\n7,0.5\n")
    return file


@pytest.mark.parametrize("period", [None, 10.0])
def test_energy_of_a_trace_is_the_integral_of_its_power(power, period):
    source = TraceRecharge(recharge_trace=power, recharge_period=period)
    times = np.linspace(0, 36, 3600, endpoint=False) + 0.005
    inside = times % 10 if period else times
    watts = np.select([inside < 2, inside < 4, inside < 7], [0, 1.5, 0], 0.5)
    for since, until in ((0.0, 3.0), (1.0, 9.0), (3.0, 25.5), (12.5, 36.0)):
        expected = 0.01 * watts[(times > since) & (times < until)].sum()
        assert source.joules(MANY[:1], np.array([since]), until, Stream(0)) == pytest.approx(
            expected
        )


def test_traces_that_are_no_traces_are_refused(tmp_path, power):
    with pytest.raises(ConfigError, match="needs recharge_trace: give it"):
        TraceRecharge().check()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        TraceRecharge(recharge_trace=tmp_path / "none.csv").check()
    with pytest.raises(ConfigError, match=r"recharge_period=7 conflicts with .* power at 7 s"):
        TraceRecharge(recharge_trace=power, recharge_period=7.0).check()
    for text, why in (
        ("seconds,watts\n1,x\n", "could not convert"),
        ("a,b\n1,2\n", "seconds"),
        ("seconds,watts\n2,1\n1,1\n", "increasing seconds"),
        ("", "there is no column seconds"),
    ):
        power.with_name("bad.csv").write_text(text)
        with pytest.raises(ConfigError, match=why):
            TraceRecharge(
                recharge_trace=power.with_name("bad.csv"), recharge_period=float(len(text)) + 99
            ).check()


SOURCES = {
    "none": NoRecharge(),
    "constant": ConstantRecharge(recharge_watts=0.2),
    "harvest": Harvest(packet_joules=0.5, packets_per_second=0.4),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("drops", [False, True])
def test_charges_are_those_of_a_loop_over_clients(name, drops):
    """Rounds at random times; every client's charge by hand, with what is lost when it is full."""
    limits = EnergyLimits(None, 2.0 + np.arange(8) / 4, SOURCES[name], drops, Stream(3))
    random, charges, now = np.random.default_rng(0), Charges(), 0.0
    charge, at, need = 2.0 + np.arange(8) / 4, np.zeros(8), np.zeros(8)
    for _ in range(60):
        now += random.exponential(2.0)
        for client in range(8):
            more = SOURCES[name].joules(np.array([client]), at[[client]], now, Stream(3))[0]
            charge[client], at[client] = min(charge[client] + more, 2.0 + client / 4), now
        able = limits.able(8, None, charges, now, None)
        expected = np.flatnonzero(need <= charge)
        assert able is None or able.at(np.arange(len(able))).tolist() == expected.tolist()
        if not len(expected):
            continue
        who = np.sort(random.choice(expected, min(3, len(expected)), replace=False))
        joules = random.uniform(0.2, 1.5, len(who))
        short = limits.short(charges, who, joules, now)
        assert_array_equal(short, joules > charge[who])
        charges = limits.after(charges, who[short], now, need=joules[short])
        charges = limits.after(charges, who[~short], now, spent=joules[~short])
        need[who] = np.where(short, np.inf if drops else joules, 0.0)
        charge[who[~short]] -= joules[~short]
        assert_allclose(limits.charge(charges, now), charge[charges.clients], rtol=1e-9, atol=1e-12)
        assert (charge >= 0).all()
        row = limits.row(8, charges, now)
        assert row["charge_min"] == pytest.approx(charge.min(), abs=1e-12)
        assert row["charge_mean"] == pytest.approx(charge.mean())
        assert row["empty"] == (need > charge).sum()
    assert need.any()


@pytest.mark.parametrize("name", ["constant", "harvest"])
def test_the_first_charged_client_is_waited_for(name):
    """Just before that time none is charged, and then one is."""
    limits = EnergyLimits(None, 3.0, SOURCES[name], False, Stream(4))
    charges = Charges(
        np.arange(5), np.linspace(0, 1, 5), np.full(5, 2.0), np.array([3.5, 2, 2, 1, 0])
    )
    when = limits.next_charged(charges, 2.0)
    assert 2.0 < when < 60
    early, late = (limits.charge(charges, when + step) for step in (-1e-6, 0.0))
    waiting = np.array([1, 2, 3])
    assert (early[waiting] < charges.need[waiting]).all()
    assert (late[waiting] >= charges.need[waiting]).any()
    if name == "constant":
        assert when == pytest.approx(2.0 + min(2 - 0.25, 2 - 0.5, 1 - 0.75) / 0.2)
    never = EnergyLimits(None, 3.0, NoRecharge())
    assert never.next_charged(charges, 2.0) == np.inf
    stuck = Charges(np.arange(1), np.zeros(1), np.zeros(1), np.array([3.5]))
    assert limits.next_charged(stuck, 2.0) == np.inf


def test_a_wait_for_too_many_packets_is_refused():
    """Otherwise a run would draw them for hours."""
    harvest = Harvest(packet_joules=1e-9)
    with pytest.raises(ConfigError, match="wait for more than 200000 packets"):
        harvest.joules(np.arange(2), np.zeros(2), 1e6, Stream(1))
