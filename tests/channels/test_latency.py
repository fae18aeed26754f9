"""Rates, latency and energy match scalar loops over (17) and (18)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    ChannelDraw,
    EqualSlots,
    Load,
    Network,
    Stream,
    aircomp_seconds_per_element,
    airtime_seconds_per_bit,
    compute_seconds,
    edge_round_seconds,
    global_round_seconds,
    ofdma_seconds_per_bit,
    rate_bps,
    seconds_per_parameter,
    snr_linear,
    tdma_seconds_per_bit,
)

D = 1000  # parameters of the full model


CELL_SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def draws(draw, sizes=CELL_SIZES):
    """A random network and one draw of its channels."""
    sizes = draw(sizes)
    clients, cells = sum(sizes), len(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    network = Network.from_snr(
        np.repeat(np.arange(cells), sizes),
        cpu_hz=10 ** rng.uniform(7, 10, clients),
        snr_db=rng.uniform(-20, 40, clients),
        bandwidth_hz=10 ** rng.uniform(5, 8, cells),
        antennas=int(rng.integers(1, 5)),
        path_gain_db=rng.uniform(-30, 10, clients),
        cycles_per_step=float(10 ** rng.uniform(4, 9)),
    )
    return network.draw(Stream(int(rng.integers(2**32))))


def parameters_of(network, seed):
    return np.random.default_rng(seed).integers(0, D + 1, network.cells)


def activity_of(network, seed):
    return np.random.default_rng(seed).random(network.clients) < 0.6


def rate_by_hand(draw, i, *, share=1.0):
    """Rate in bit/s of client i at full power in a fraction ``share`` of the band."""
    network = draw.network
    norm = sum(abs(complex(x)) ** 2 for x in draw.h[i])
    snr = 10 ** (network.snr_db[i] / 10) * norm / share
    return share * network.bandwidth_hz[network.cell_of[i]] * math.log(1 + snr, 2)


def edge_round_by_hand(draw, cell, parameters, steps, scheme, sends, bits=32):
    """Seconds of an edge round by (17), computed client by client.

    ``parameters`` and ``steps`` have one value per client.
    """
    network, slowest = draw.network, 0.0
    senders = [i for i in range(network.clients) if network.cell_of[i] == cell and sends[i]]
    for i in senders:
        n = len(senders)
        computing = steps[i] * parameters[i] * network.cycles_per_step / (network.cpu_hz[i] * D)
        load = bits * D  # L_0
        if scheme == "tdma":
            sending = n * parameters[i] * load / (rate_by_hand(draw, i) * D)
        else:
            sending = parameters[i] * load / (rate_by_hand(draw, i, share=1 / n) * D)
        slowest = max(slowest, computing + sending)
    return slowest


SCHEMES = {"tdma": tdma_seconds_per_bit, "ofdma": ofdma_seconds_per_bit}


@given(draws(), st.integers(0, 50), st.integers(1, 9), st.integers(0, 99), st.booleans())
def test_latency_equals_17_and_18(draw, steps, edge_rounds, seed, everyone):
    network = draw.network
    parameters = parameters_of(network, seed)
    active = None if everyone else activity_of(network, seed)
    sends = [True] * network.clients if active is None else active
    of_client = [parameters[cell] for cell in network.cell_of]
    for scheme, seconds_per_bit in SCHEMES.items():
        settings = {
            "model_parameters": D,
            "local_steps": steps,
            "seconds_per_bit": seconds_per_bit(draw, active),
            "active": active,
        }
        by_hand = [
            edge_round_by_hand(draw, cell, of_client, [steps] * network.clients, scheme, sends)
            for cell in range(network.cells)
        ]
        edge = edge_round_seconds(draw, parameters, **settings)
        assert edge == pytest.approx(by_hand, rel=1e-9)
        total = global_round_seconds(draw, parameters, edge_rounds=edge_rounds, **settings)
        assert total == pytest.approx(max(edge_rounds * cell for cell in by_hand), rel=1e-9)
        # (20): the coefficient used to optimise mask sizes gives the same latency.
        slope = seconds_per_parameter(draw, **settings)
        assert slope * parameters == pytest.approx(edge, rel=1e-12)


@given(draws(), st.integers(0, 99))
def test_submodels_of_a_cell_may_differ_in_size_and_steps(draw, seed):
    """Submodel sizes and steps may differ between the clients of a cell."""
    network, rng = draw.network, np.random.default_rng(seed)
    parameters = rng.integers(0, D + 1, network.clients)
    steps = rng.integers(0, 9, network.clients)
    got = edge_round_seconds(
        draw,
        parameters,
        model_parameters=D,
        local_steps=steps,
        seconds_per_bit=tdma_seconds_per_bit(draw),
        bits_per_parameter=8,
    )
    everyone = [True] * network.clients
    for cell in range(network.cells):
        by_hand = edge_round_by_hand(draw, cell, parameters, steps, "tdma", everyone, bits=8)
        assert got[cell] == pytest.approx(by_hand, rel=1e-9)


@given(draws(), st.integers(0, 99))
def test_a_sub_network_has_the_seconds_and_joules_of_its_clients(draw, seed):
    """Seconds and joules of a sub-network are bit-identical to those in the whole network.

    A cell without clients takes 0 s.
    """
    network = draw.network
    active = activity_of(network, seed)
    some, part = np.flatnonzero(active), draw.of(np.flatnonzero(active))
    for scheme, seconds_per_bit in SCHEMES.items():
        among_all, alone = seconds_per_bit(draw, active), seconds_per_bit(part)
        assert np.array_equal(alone, among_all[some])
        assert np.array_equal(
            airtime_seconds_per_bit(part, scheme),
            airtime_seconds_per_bit(draw, scheme, active)[some],
        )
        settings = {"model_parameters": D, "local_steps": 3}
        whole = seconds_per_parameter(draw, seconds_per_bit=among_all, active=active, **settings)
        assert np.array_equal(seconds_per_parameter(part, seconds_per_bit=alone, **settings), whole)
        assert (whole[np.bincount(network.cell_of[some], minlength=network.cells) == 0] == 0).all()
    assert np.array_equal(
        aircomp_seconds_per_element(part), aircomp_seconds_per_element(draw, active)[some]
    )


def test_batched_rounds_equal_single_rounds():
    network = Network.from_snr([0, 0, 1], cpu_hz=[1e9, 2e9, 3e9], snr_db=10, antennas=2)
    stream, rng = Stream(9), np.random.default_rng(0)
    batch = network.draws(stream, range(4))
    parameters = rng.integers(1, D, (4, 2))
    active = rng.random((4, 3)) < 0.5
    for seconds_per_bit in SCHEMES.values():
        together = edge_round_seconds(
            batch,
            parameters,
            model_parameters=D,
            local_steps=5,
            seconds_per_bit=seconds_per_bit(batch, active),
            active=active,
        )
        assert together.shape == (4, 2)
        for t in range(4):
            draw = network.draw(stream, t)
            alone = edge_round_seconds(
                draw,
                parameters[t],
                model_parameters=D,
                local_steps=5,
                seconds_per_bit=seconds_per_bit(draw, active[t]),
                active=active[t],
            )
            assert np.array_equal(together[t], alone)


def test_rate_by_hand():
    """With 10 MHz, SNR 20 dB and gain 0.63 the rate is 10 MHz * log2(1 + 63) = 60 Mbit/s.

    A tiny SNR loses no precision.
    """
    assert snr_linear(20.0) == pytest.approx(100)
    assert rate_bps(1e7, 100, 0.63) == pytest.approx(6e7, rel=1e-12)
    assert rate_bps(1.0, 1e-18, 1.0) == pytest.approx(1e-18 / math.log(2), rel=1e-12)
    assert rate_bps([1e6, 2e6], 1.0, [[1.0], [3.0]]).tolist() == [[1e6, 2e6], [2e6, 4e6]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e6, -2.0, -0.5), "snr contains -2.0"),
        (([1, 2], [1, 2, 3], 1.0), r"shapes do not fit: bandwidth_hz \(2,\), snr \(3,\), gain"),
    ],
)
def test_rates_reject_negative_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        rate_bps(*arguments)
    assert rate_bps(0, 0, 0) == 0


@pytest.fixture
def unit_draw():
    """Three clients in cell 0 and one in cell 1, with gains 1, 3, 0, 1 at SNR 0 dB over 1 MHz."""
    watts = np.array([0.1, 0.2, 0.1, 0.4])
    network = Network.from_snr(
        [0, 0, 0, 1],
        cpu_hz=[1e9, 2e9, 1e9, 1e9],
        snr_db=-10 * np.log10(watts / 0.1),
        bandwidth_hz=1e6,
        transmit_power_w=watts,
        switched_capacitance=2e-28,
    )
    return ChannelDraw(network, np.sqrt([[1.0], [3.0], [0.0], [1.0]]))


def test_seconds_per_bit_of_each_scheme(unit_draw):
    """n clients take n/R with TDMA; with OFDMA each has the band B/n at n times the SNR.

    If the channel is zero, the time is infinite.
    """
    inf = math.inf
    tdma = tdma_seconds_per_bit(unit_draw)
    assert tdma == pytest.approx([3e-6, 1.5e-6, inf, 1e-6])
    ofdma = ofdma_seconds_per_bit(unit_draw)
    assert ofdma == pytest.approx([1.5e-6, 3e-6 / math.log2(10), inf, 1e-6])
    assert airtime_seconds_per_bit(unit_draw, "tdma") == pytest.approx([1e-6, 0.5e-6, inf, 1e-6])
    assert np.array_equal(airtime_seconds_per_bit(unit_draw, "ofdma"), ofdma)


def test_only_active_clients_share_the_band(unit_draw):
    active = np.array([True, False, False, False])
    for scheme, seconds_per_bit in SCHEMES.items():
        assert seconds_per_bit(unit_draw, active) == pytest.approx([1e-6, 0, 0, 0])
        assert airtime_seconds_per_bit(unit_draw, scheme, active) == pytest.approx([1e-6, 0, 0, 0])
    pair = np.array([True, True, False, False])
    assert tdma_seconds_per_bit(unit_draw, pair) == pytest.approx([2e-6, 1e-6, 0, 0])
    seconds = edge_round_seconds(
        unit_draw,
        [10, 10],
        model_parameters=10,
        local_steps=4,
        seconds_per_bit=tdma_seconds_per_bit(unit_draw, active),
        active=active,
    )
    assert seconds == pytest.approx([4e-3 + 320e-6, 0.0])


@given(draws(sizes=st.integers(1, 5).map(lambda cells: [1] * cells)))
def test_schemes_agree_with_one_client_per_cell(draw):
    tdma = tdma_seconds_per_bit(draw)
    assert np.array_equal(tdma, ofdma_seconds_per_bit(draw))
    assert np.array_equal(tdma, airtime_seconds_per_bit(draw, "tdma"))


@given(draws())
def test_ofdma_is_never_slower_than_tdma(draw):
    """n log2(1 + s) >= log2(1 + n s), by Bernoulli's inequality."""
    assert (ofdma_seconds_per_bit(draw) <= tdma_seconds_per_bit(draw) * (1 + 1e-12)).all()


def test_empty_uploads_take_no_time(unit_draw):
    settings = {
        "model_parameters": 10,
        "local_steps": 1,
        "seconds_per_bit": tdma_seconds_per_bit(unit_draw),
    }
    assert edge_round_seconds(unit_draw, [0, 0], **settings).tolist() == [0.0, 0.0]
    assert edge_round_seconds(unit_draw, [1, 0], **settings).tolist() == [math.inf, 0.0]
    assert global_round_seconds(unit_draw, [1, 0], edge_rounds=2, **settings) == math.inf


def test_seconds_and_joules_by_hand(unit_draw):
    """20 steps on half of the model take 1e7 cycles, at kappa f^2 = 2e-10 or 8e-10 J per cycle."""
    network = unit_draw.network
    assert compute_seconds(network, 20, 0.5) == pytest.approx([0.01, 0.005, 0.01, 0.01])
    load = Load(1e7 * np.array([1, 1, 1, 0.5]), 1e6 / 32)
    service = EqualSlots().serve(load, unit_draw)
    airtime = 1e6 * airtime_seconds_per_bit(unit_draw, "tdma")
    sending = np.where(airtime < np.inf, network.transmit_power_w * airtime, 0.0)
    assert service.joules == pytest.approx(np.array([2e-3, 8e-3, 2e-3, 1e-3]) + sending)


def test_torch_tensors_are_accepted(unit_draw):
    active = torch.tensor([True, True, False, True])
    per_bit = tdma_seconds_per_bit(unit_draw, active)
    settings = {"model_parameters": 10, "local_steps": 1}
    wanted = edge_round_seconds(
        unit_draw, [5, 5], seconds_per_bit=per_bit, active=active.numpy(), **settings
    )
    got = edge_round_seconds(
        unit_draw,
        torch.tensor([5, 5]),
        seconds_per_bit=torch.from_numpy(per_bit),
        active=active,
        **settings,
    )
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": [1, 11]}, "parameters contains 11, which exceeds model_parameters=10: "),
        ({"seconds_per_bit": 1e-6}, r"seconds_per_bit has shape \(\)"),
        (
            {"parameters": np.ones((3, 2)), "seconds_per_bit": np.ones((2, 4))},
            r"shapes do not fit: parameters \(3, 2\), seconds_per_bit \(2, 4\)\. Give",
        ),
        ({"active": [1, 1, 0, 0]}, "active has shape .* dtype int64"),
        ({"active": [True]}, r"active has shape \(1,\)"),
        ({"parameters": [[1, 2]] * 2, "active": [[True] * 4] * 3}, r"active has shape \(3, 4\)"),
    ],
)
def test_latency_errors(unit_draw, changes, message):
    settings = {
        "parameters": [1, 2],
        "model_parameters": 10,
        "local_steps": 1,
        "seconds_per_bit": np.ones(4),
        "edge_rounds": 5,
    }
    with pytest.raises(ValueError, match=message):
        global_round_seconds(unit_draw, **(settings | changes))


def test_shapes_of_steps_and_shares_are_named(unit_draw):
    message = r"shapes do not fit: steps \(3, 2\), share \(2, 4\)\. Give"
    with pytest.raises(ValueError, match=message):
        compute_seconds(unit_draw.network, np.ones((3, 2)), np.ones((2, 4)))


def test_a_parameter_may_be_more_than_the_model(unit_draw):
    """Seconds per parameter are a quotient: no model needs to have one parameter."""
    settings = {"local_steps": 3, "seconds_per_bit": np.arange(4.0)}
    half = seconds_per_parameter(unit_draw, model_parameters=0.5, **settings)
    part = edge_round_seconds(unit_draw, 0.25, model_parameters=0.5, **settings)
    np.testing.assert_allclose(0.25 * half, part, rtol=1e-15)


def test_no_edge_rounds_take_no_time(unit_draw):
    """Also with a client of rate 0."""
    settings = {"model_parameters": 10, "local_steps": 1, "seconds_per_bit": np.full(4, np.inf)}
    assert global_round_seconds(unit_draw, [1, 2], edge_rounds=0, **settings) == 0
    assert global_round_seconds(unit_draw, [1, 2], edge_rounds=np.int64(1), **settings) == np.inf


@pytest.mark.parametrize(
    "seconds", [tdma_seconds_per_bit, ofdma_seconds_per_bit, aircomp_seconds_per_element]
)
def test_active_clients_of_other_blocks_are_named(seconds):
    network = Network.from_snr([0, 0, 1], cpu_hz=1e9, snr_db=0.0)
    blocks = network.draws(Stream(1), range(2))
    with pytest.raises(ValueError, match=r"active has shape \(3, 3\), but .* leading axes \(2,\)"):
        seconds(blocks, np.ones((3, 3), bool))
    assert seconds(blocks, np.ones((4, 1, 3), bool)).shape == (4, 2, 3)
