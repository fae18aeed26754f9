"""Networks are validated, divided into cells and sub-networks, and drawn reproducibly."""

import dataclasses
import doctest
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import channels
from channels import ChannelDraw, Network, Rayleigh, Rician, Stream, even_cells, section_vi_c

STREAM = Stream(1, ("channel",))


FIELDS = ("cpu_hz", "path_gain_db", "transmit_power_w", "switched_capacitance")


def small(**changes):
    settings = {"cell_of": [0, 0, 1], "cpu_hz": 1e9, "snr_db": 20.0, "antennas": 2}
    return Network.from_snr(**(settings | changes))


@given(st.integers(1, 60), st.integers(0, 300))
def test_even_cells(cells, extra):
    cell_of = even_cells(cells + extra, cells)
    sizes = np.bincount(cell_of, minlength=cells)
    assert len(cell_of) == cells + extra
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(sizes) <= 0).all()  # larger cells come first
    assert (np.diff(cell_of) >= 0).all()


def test_cells_and_clients_may_be_integers_of_numpy():
    assert even_cells(np.int32(3), np.int64(2)).tolist() == [0, 0, 1]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_values_read_as_given(sizes, data):
    """Whether values are equal within cells or not, in the network, its parts and its copies."""
    cell_of = np.repeat(np.arange(len(sizes)), sizes)
    levels = st.lists(st.sampled_from([1.0, 2.0]), min_size=len(cell_of), max_size=len(cell_of))
    by_cell = st.sampled_from([cell_of + 1.0, cell_of % 2 + 1.0, np.ones(len(cell_of))])
    given_values = {name: np.array(data.draw(levels | by_cell)) for name in FIELDS}
    network = small(cell_of=cell_of, snr_db=given_values["cpu_hz"], **given_values)
    # 0.1 W is where the given SNRs hold.
    given_values["snr_db"] = given_values["cpu_hz"] + 10 * np.log10(
        given_values["transmit_power_w"] / 0.1
    )
    some = np.flatnonzero(data.draw(levels.map(np.array)) == 1)
    copies = (network, dataclasses.replace(network), pickle.loads(pickle.dumps(network)))
    for name, wanted in ({"cell_of": cell_of} | given_values).items():
        for made in copies:
            value = getattr(made, name)
            assert (value.dtype, value.tolist()) == (wanted.dtype, wanted.tolist())
            assert getattr(made.of(some), name).tolist() == wanted[some].tolist()
        assert not getattr(network, name).flags.writeable


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_cell_sizes_and_starts(sizes):
    network = small(cell_of=np.repeat(np.arange(len(sizes)), sizes))
    assert (network.cells, network.clients) == (len(sizes), sum(sizes))
    assert network.cell_sizes.tolist() == sizes
    for cell in range(len(sizes)):
        wanted = [i for i, at in enumerate(network.cell_of) if at == cell]
        assert network.cell_starts[cell] == wanted[0]


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_a_draw_does_not_alias_its_input(kind):
    network = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=0.0, antennas=3)
    h = np.ones((2, 3), np.complex64)
    draw = ChannelDraw(network, kind(h))
    h[:] = 2
    np.testing.assert_array_equal(draw.h, np.ones((2, 3)))
    np.testing.assert_array_equal(draw.gain, [3, 3])


def test_one_number_applies_to_all():
    network = small(bandwidth_hz=5e6, transmit_power_w=[0.1, 0.2, 0.3])
    assert network.cpu_hz.tolist() == [1e9] * 3
    assert network.bandwidth_hz.tolist() == [5e6] * 2
    assert network.transmit_power_w.tolist() == [0.1, 0.2, 0.3]
    faster = dataclasses.replace(network, cpu_hz=2e9)
    assert faster.cpu_hz.tolist() == [2e9] * 3
    assert faster.bandwidth_hz is not None
    assert faster.transmit_power_w.tolist() == [0.1, 0.2, 0.3]


def test_a_network_is_immutable():
    given_cells = np.array([0, 0, 1])
    network = small(cell_of=given_cells)
    given_cells[2] = 0
    assert network.cell_of.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        network.cpu_hz[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.antennas = 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_of": [0, 1, 0]}, r"cell_of\[2\] is 0 after 1: .*Sort"),
        ({"cell_of": [-1, 0, 1]}, r"cell_of\[0\] is -1"),
        ({"cell_of": [0, 0, 2]}, "cell 1 has no client"),
        ({"cell_of": [1, 1, 2]}, "cell 0 has no client"),
    ],
)
def test_invalid_networks_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes)


@pytest.mark.parametrize(
    "changes", [{}, {"fading": Rician(3.0), "antenna_correlation": 0.3 + 0.4j}]
)
def test_draws_depend_on_stream_and_index_only(changes):
    network = small(**changes)
    draw = network.draw(STREAM, 7)
    assert draw.h.shape == (3, 2)
    assert draw.h.dtype == np.complex64
    assert np.array_equal(draw.h, small(**changes).draw(STREAM, 7).h)
    for other in (network.draw(STREAM, 8), network.draw(STREAM.child("x"), 7)):
        assert (draw.h != other.h).all()
    batch = network.draws(STREAM, [7, 0, 7])
    assert batch.h.shape == (3, 3, 2)
    for block, index in enumerate([7, 0, 7]):
        single = network.draw(STREAM, index)
        assert np.array_equal(batch.h[block], single.h)
        assert np.array_equal(batch.gain[block], single.gain)
    assert network.draws(STREAM, []).gain.shape == (0, 3)


@st.composite
def networks(draw):
    """A network whose values differ between clients and cells, and a subset of its clients."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    clients, rng = sum(sizes), np.random.default_rng(draw(st.integers(0, 2**32)))
    network = Network.from_snr(
        np.repeat(np.arange(len(sizes)), sizes),
        cpu_hz=10 ** rng.uniform(7, 10, clients),
        snr_db=rng.uniform(-20, 40, clients),
        bandwidth_hz=10 ** rng.uniform(5, 8, len(sizes)),
        antennas=draw(st.integers(1, 11)),
        fading=draw(st.sampled_from([Rayleigh(), Rician(2.0)])),
        antenna_correlation=draw(st.sampled_from([0.0, 0.7, 0.2 - 0.5j])),
        path_gain_db=rng.uniform(-90, 10, clients),
        transmit_power_w=rng.uniform(0.01, 1, clients),
        switched_capacitance=rng.uniform(0, 1e-27, clients),
    )
    return network, np.flatnonzero(rng.random(clients) < rng.random())


@given(networks(), st.integers(0, 2**40))
def test_a_sub_network_draws_rows_of_the_whole_draw(case, index):
    """Draws for nested sub-networks and subsets of a draw are bit-identical to the full draw."""
    network, some = case
    whole, part = network.draw(STREAM, index), network.of(some)
    fewer = some[::2]
    for clients, draw in (
        (some, part.draw(STREAM, index)),
        (some, network.draw(STREAM, index, some)),
        (some, whole.of(some)),
        (fewer, part.of(fewer).draw(STREAM, index)),
        (fewer, part.draw(STREAM, index).of(fewer)),
    ):
        assert np.array_equal(draw.h, whole.h[clients])
        assert np.array_equal(draw.gain, whole.gain[clients])
        assert np.array_equal(draw.network.numbers, clients)
    blocks = network.draws(STREAM, [index, index + 1], some)
    assert np.array_equal(blocks.h[0], whole.h[some])
    assert np.array_equal(blocks.h, network.draws(STREAM, [index, index + 1]).of(some).h)


@given(networks())
def test_a_sub_network_keeps_values_and_cells_of_its_clients(case):
    """Clients keep their values and cells; ``over_cells`` gives 0 for a cell without clients."""
    network, some = case
    part = network.of(some)
    assert (part.clients, part.cells) == (len(some), network.cells)
    for name in ("cell_of", "cpu_hz", "snr_db", "path_gain_db", "transmit_power_w"):
        assert np.array_equal(getattr(part, name), getattr(network, name)[some])
    assert np.array_equal(part.switched_capacitance, network.switched_capacitance[some])
    assert np.array_equal(part.bandwidth_hz, network.bandwidth_hz)
    values = np.random.default_rng(0).random((2, len(some)))
    most, total = (part.over_cells(ufunc, values) for ufunc in (np.maximum, np.add))
    for cell in range(network.cells):
        rows = [i for i, number in enumerate(some) if network.cell_of[number] == cell]
        assert part.cell_sizes[cell] == len(rows)
        assert np.array_equal(most[:, cell], values[:, rows].max(1, initial=0.0))
        np.testing.assert_allclose(total[:, cell], values[:, rows].sum(1), rtol=1e-12)


@given(networks())
def test_rows_by_cell_hold_the_values_in_order(case):
    """Also of cells without a client; further places have the fill value."""
    network, some = case
    part = network.of(some)
    values = np.random.default_rng(0).random((2, len(some)))
    rows = part.by_cell(values, fill=-1.0)
    assert rows.shape == (2, network.cells, part.cell_sizes.max(initial=0))
    for cell in range(network.cells):
        mine, size = part.cell_of == cell, part.cell_sizes[cell]
        assert np.array_equal(rows[:, cell, :size], values[:, mine])
        assert (rows[:, cell, size:] == -1).all()


def test_rows_by_cell_need_one_value_per_client():
    wanted = (
        r"give \[..., clients\] real numbers, or \[..., clients, antennas\] complex.* 3 clients"
    )
    for values, found in (
        ([1.0, 2.0], r"shape \(2,\) and dtype float64"),
        (np.ones(3, complex), r"shape \(3,\) and dtype complex128"),
        (np.ones((3, 2)), r"shape \(3, 2\) and dtype float64"),
        (np.ones((2, 3), np.complex64), r"shape \(2, 3\) and dtype complex64"),
    ):
        with pytest.raises(ValueError, match=f"values has {found}: {wanted}"):
            small().by_cell(values)


@given(networks())
def test_channels_by_cell_hold_the_antennas_of_each_client(case):
    network, some = case
    part = network.of(some)
    h = np.random.default_rng(0).standard_normal((2, len(some), 5)) * (1 + 2j)
    rows = part.by_cell(h)
    assert rows.shape == (2, network.cells, part.cell_sizes.max(initial=0), 5)
    for antenna in range(5):
        for values, found in ((h.real, rows.real), (h.imag, rows.imag)):
            assert np.array_equal(found[..., antenna], part.by_cell(values[..., antenna]))


@pytest.mark.parametrize("watts", [0.1, [0.2, 0.4, 1.0]])
def test_gains_per_noise_do_not_depend_on_the_power(watts):
    """They are g / N0, and times the power they are the SNR in Hz."""
    network = small(transmit_power_w=watts)
    draw = network.draw(STREAM)
    assert np.allclose(draw.gain_per_noise, small().draw(STREAM).gain_per_noise, rtol=1e-12)
    noise_w_per_hz = 10 ** ((-174 - 30) / 10)
    mean_gain = 10 ** (network.gain_db / 10)
    assert np.allclose(draw.gain_per_noise, mean_gain * draw.gain / noise_w_per_hz, rtol=1e-12)


def test_replace_keeps_the_client_indices_of_a_sub_network():
    """A modified sub-network with only client 2 still draws the channels of client 2."""
    network = small(cell_of=[0, 0, 0], fading=Rician(5.0))
    changed = dataclasses.replace(network.of([2]), transmit_power_w=0.3).with_snr(3.0)
    assert np.array_equal(changed.draw(STREAM).h, network.draw(STREAM).h[2:])
    assert network.of(network.numbers) is network
    assert network.of([]).draw(STREAM).h.shape == (0, 2)


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ([0, 3], "clients contains 3: choose from the network's client indices"),
        ([-1], "clients contains -1"),
        ([1, 0], r"clients\[1\] is 0 after 1: list each client once, in increasing order"),
        ([1, 1], r"clients\[1\] is 1 after 1"),
        ([0.5], "clients has shape .* dtype float64"),
        ([[0]], r"clients has shape \(1, 1\)"),
    ],
)
def test_invalid_subsets_are_rejected(clients, message):
    for subset in (small().of, small().draw(STREAM).of):
        with pytest.raises(ValueError, match=message):
            subset(clients)
    with pytest.raises(ValueError, match="clients contains 1: choose from the network's"):
        small().of([0, 2]).of([1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"part": [4, 9]}, r"part has shape \(2,\): give one index per client, here \(3,\)"),
        ({"part": [4, 9, 9]}, r"part\[2\] is 9 after 9"),
        ({"part": [0, 1, 2], "cell_of": [0, 2, 1]}, "cell_of has maximum 2, or is not sorted"),
        ({"part": [0, 1, 2], "cell_of": [0, 2, 3]}, "give cells below 3, the number of cells"),
    ],
)
def test_invalid_parts_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        small(**({"bandwidth_hz": [1.0, 2.0, 3.0]} | changes))


def test_gains_of_uploads_keep_the_direction_of_their_client():
    """They equal the gains of the client's channels in draws of the network."""
    network = small(fading=Rician(6.0), antenna_correlation=0.9).of([1, 2])
    stream, numbers = Stream(5), range(50)
    found = [[network.draw_gain(stream, n, client) for client in (0, 1)] for n in numbers]
    np.testing.assert_allclose(found, network.draws(stream, numbers).gain, rtol=1e-6)
    with pytest.raises(ValueError, match=r"antenna_correlation 0\.9: a gain depends on the client"):
        network.draw_gains(stream, 0, 8)


@pytest.mark.parametrize("changes", [{"antenna_correlation": 0.9}, {"fading": Rician(6.0)}])
def test_gains_of_uploads_without_directions_have_no_client(changes):
    network = small(**changes)
    assert not network.gain_by_client
    assert len(np.unique(network.draw_gains(Stream(5), 0, 100))) == 100


def test_gain_is_the_squared_norm_with_path_gain():
    plain = small().draw(STREAM)
    far = small(path_gain_db=[-20.0, 0.0, -200.0]).draw(STREAM)
    by_hand = [sum(abs(complex(x)) ** 2 for x in row) for row in plain.h]
    assert np.allclose(plain.gain, by_hand, rtol=1e-12)
    assert np.allclose(far.gain, np.multiply(by_hand, [1e-2, 1.0, 1e-20]), rtol=1e-6)
    assert plain.gain.dtype == np.float64
    assert plain.network.clients == 3


def test_a_draw_accepts_measured_channels():
    network = small()
    assert ChannelDraw(network, [[3, 4j], [1, 0], [0, 0]]).gain.tolist() == [25.0, 1.0, 0.0]


@pytest.mark.parametrize(("cells", "clients"), [(1, 5), (2, 300), (4, 600), (5, 603)])
def test_section_vi_c(cells, clients):
    """The first floor(N/2) cells are slow; CPU speeds and SNRs are in the published ranges.

    The standard error of a mean CPU speed is below 0.58/sqrt(120) = 0.053 GHz.
    """
    network = section_vi_c(cells, clients, stream=Stream(3))
    assert (network.cells, network.clients, network.antennas) == (cells, clients, 10)
    assert network.bandwidth_hz.tolist() == [9e6] * cells
    assert network.cycles_per_step == 1e6
    for cell in range(cells):
        members = network.cell_of == cell
        ghz = network.cpu_hz[members] / 1e9
        snr_db = set(network.snr_db[members].tolist())
        low, high, snr = (1, 2, 30.0) if cell < cells // 2 else (2, 4, 40.0)
        assert snr_db == {snr}
        assert low <= ghz.min() <= ghz.max() <= high
        if len(ghz) >= 120:
            assert abs(ghz.mean() - (low + high) / 2) < 0.17
    again = section_vi_c(cells, clients, stream=Stream(3))
    assert np.array_equal(network.cpu_hz, again.cpu_hz)
    assert (network.cpu_hz != section_vi_c(cells, clients, stream=Stream(4)).cpu_hz).all()


def test_mean_gain_of_section_vi_c_is_the_number_of_antennas():
    """||h||^2 has mean M = 10 and variance 10; the mean of 6000 draws has standard error 0.041."""
    gain = section_vi_c(clients=60, stream=STREAM).draws(STREAM, range(100)).gain
    assert abs(gain.mean() - 10) < 0.15


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(channels).failed == 0
    assert doctest.testmod(channels).attempted > 3


def test_channels_imports_only_numpy():
    code = "import channels, sys; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "channels" in loaded
    assert not loaded & {"torch", "scipy", "matplotlib", "solvers", "wirelessfl"}


def test_wrong_arguments_of_draws_are_named():
    network, stream = section_vi_c(cells=1, clients=3, stream=Stream(1)), Stream(2)
    with pytest.raises(TypeError, match=r"^indices is 3: give several blocks, e\.g\. range"):
        network.draws(stream, 3)
    assert (network.draws(stream, [1]).h[0] == network.draw(stream, 1).h).all()
