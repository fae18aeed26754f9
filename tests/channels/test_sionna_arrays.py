"""Networks from arrays as Sionna has them: flat channels, cells, positions, and what is refused."""

import warnings

import numpy as np
import pytest
import torch

import channels
from channels import Note, Stream, from_sionna

BATCH, RX, RX_ANT, TX, PATHS, TIME = 2, 2, 3, 4, 5, 2
UPLINK = (BATCH, RX, RX_ANT, TX, 1, PATHS, TIME)
DICE = np.random.default_rng(8)
TAU = DICE.uniform(0, 1e-6, (BATCH, RX, TX, PATHS))
SPREAD = DICE.uniform(0, 1e-6, UPLINK[:6])
CELL_OF = [0, 1, 0, 1]  # clients are not sorted by cell
ORDER = [0, 2, 1, 3]


def draws(shape, scale=1e-5):
    a = DICE.normal(size=shape) + 1j * DICE.normal(size=shape)
    return a * scale


A = draws(UPLINK)
A[:, 0, :, 0::2] *= 10  # clients 0 and 2 are near receiver 0, 1 and 3 near receiver 1
A[:, 1, :, 1::2] *= 10


def replayed(network):
    """The channels of all blocks, with their gains [blocks, clients, antennas]."""
    return network.draws(Stream(1), range(network.fading.blocks)).h * 10 ** (
        (network.gain_db - network.path_gain_db) / 20
    ).reshape(-1, 1)


def by_hand(tau, hz):
    """The DFT sum of each link at one frequency, term by term, in the order of the network."""
    h = np.zeros((BATCH * TIME, TX, RX_ANT), dtype=complex)
    for b in range(BATCH):
        for z in range(TIME):
            for row, client in enumerate(ORDER):
                cell = CELL_OF[client]
                for m in range(RX_ANT):
                    for p in range(PATHS):
                        if tau.ndim == 4:
                            delay = tau[b, cell, client, p]
                        else:
                            delay = tau[b, cell, m, client, 0, p]
                        turn = np.exp(-2j * np.pi * hz * delay)
                        h[TIME * b + z, row, m] += A[b, cell, m, client, 0, p, z] * turn
    return h


@pytest.mark.parametrize("tau", [TAU, SPREAD], ids=["tau of links", "tau of antennas"])
@pytest.mark.parametrize("hz", [0.0, 0.7e6])
def test_the_channel_is_the_dft_sum_at_the_frequency(tau, hz):
    network = from_sionna(A, tau, cpu_hz=1e9, frequency_hz=hz)
    assert network.cell_of.tolist() == [0, 0, 1, 1]
    expected = by_hand(tau, hz)
    np.testing.assert_allclose(replayed(network), expected, rtol=1e-5, atol=1e-11)
    np.testing.assert_allclose(
        network.gain_db, 10 * np.log10((abs(expected) ** 2).mean((0, 2))), rtol=1e-12
    )


def test_mean_power_is_that_of_many_frequencies_in_the_band():
    """Midpoints of 4000 parts of the band; the closed form needs none of them."""
    band, middle = 2e6, 3e5
    hz = (np.arange(4000) + 0.5) / 4000 * band - band / 2 + middle
    fine = np.zeros((BATCH, RX, RX_ANT, TX, TIME))
    for f in hz:
        turned = np.exp(-2j * np.pi * f * TAU)[:, :, None, :, :, None]
        fine += abs((A[:, :, :, :, 0] * turned).sum(-2)) ** 2 / len(hz)
    for tau in (TAU, np.broadcast_to(TAU[:, :, None, :, None], UPLINK[:6])):
        network = from_sionna(
            A, tau, cpu_hz=1e9, frequency_hz=middle, mean_power=True, bandwidth_hz=band
        )
        found = abs(replayed(network)) ** 2
        for row, client in enumerate(ORDER):
            exact = fine[:, CELL_OF[client], :, client].transpose(0, 2, 1)
            np.testing.assert_allclose(found[:, row], exact.reshape(-1, RX_ANT), rtol=1e-5)
        response = replayed(from_sionna(A, TAU, cpu_hz=1e9, frequency_hz=middle))
        np.testing.assert_allclose(np.angle(replayed(network) / response), 0, atol=1e-5)


def test_subcarriers_are_those_of_the_impulse_responses():
    """h at a subcarrier, and its mean power; Sionna has the carrier in the middle."""
    count, spacing = 16, 30e3
    hz = spacing * (np.arange(count) - count // 2)
    turned = np.exp(-2j * np.pi * hz * TAU[:, :, None, :, None, :, None])
    h = np.einsum("brmtnpz,brmtnpf->brmtnzf", A, np.broadcast_to(turned, (*UPLINK[:6], count)))
    for options, same in (
        ({}, {}),
        ({"subcarrier": 0}, {"frequency_hz": -count // 2 * spacing}),
        ({"subcarrier": 11}, {"frequency_hz": 3 * spacing}),
    ):
        found = replayed(from_sionna(h=h, cpu_hz=1e9, **options))
        expected = replayed(from_sionna(A, TAU, cpu_hz=1e9, **same))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-11)
    mean = from_sionna(h=h, cpu_hz=1e9, mean_power=True)
    power = (abs(h[:, :, :, :, 0]) ** 2).mean(-1)
    for row, client in enumerate(ORDER):
        expected = power[:, CELL_OF[client], :, client].transpose(0, 2, 1).reshape(-1, RX_ANT)
        np.testing.assert_allclose(abs(replayed(mean)[:, row]) ** 2, expected, rtol=1e-5)


def test_the_downlink_is_reciprocal():
    """The same links with transmitters and receivers exchanged."""
    up = from_sionna(A, TAU, cpu_hz=1e9, frequency_hz=1e5)
    down = from_sionna(
        A.transpose(0, 3, 4, 1, 2, 5, 6),
        TAU.transpose(0, 2, 1, 3),
        cpu_hz=1e9,
        frequency_hz=1e5,
        direction="downlink",
    )
    np.testing.assert_array_equal(replayed(down), replayed(up))
    np.testing.assert_array_equal(down.gain_db, up.gain_db)


class Tensor:
    """An array of another framework, which NumPy reads."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


@pytest.mark.parametrize("kind", [torch.tensor, Tensor, np.ndarray.tolist])
def test_arrays_of_other_frameworks_and_without_a_batch(kind):
    expected = from_sionna(A[:1], TAU[:1], cpu_hz=1e9, frequency_hz=1e6)
    for a, tau in ((A[:1], TAU[:1]), (A[0], TAU[0])):
        network = from_sionna(kind(a), kind(tau), cpu_hz=1e9, frequency_hz=1e6)
        np.testing.assert_array_equal(replayed(network), replayed(expected))


def test_values_of_clients_and_positions_follow_their_clients(tmp_path):
    clients_m = np.array([[30.0, 40, 1.5], [200, 10, 1.5], [0, 5, 1.5], [190, 0, 1.5]])
    stations = np.array([[0.0, 0, 10], [200, 0, 10]])
    network = from_sionna(
        A,
        TAU,
        cpu_hz=[1e9, 2e9, 3e9, 4e9],
        transmit_power_w=0.2,
        noise_figure_db=7,
        clients_m=clients_m,
        base_stations_m=stations,
        line_of_sight=[True, False, False, True],
    )
    assert network.cpu_hz.tolist() == [1e9, 3e9, 2e9, 4e9]
    assert network.placement.distance_m.tolist() == [50, 5, 10, 10]
    assert network.placement.line_of_sight.tolist() == [True, False, False, True]
    np.testing.assert_array_equal(network.placement.path_loss_db, -network.gain_db)
    unknown = from_sionna(A, TAU, cpu_hz=1e9, clients_m=clients_m, base_stations_m=stations)
    channels.save_network(unknown, tmp_path / "a.npz")
    stored = channels.load_network(tmp_path / "a.npz")
    assert stored.placement.line_of_sight is None
    np.testing.assert_array_equal(replayed(stored), replayed(unknown))
    budget = channels.link_budget(stored)
    assert budget.line_of_sight is None
    assert {row["line of sight"] for row in budget.rows()} == {None}


def test_cells_of_one_band_interfere_by_their_mean_gains():
    network = from_sionna(A, TAU, cpu_hz=1e9, reuse_factor=1)
    gain = (abs(A.sum(5)[:, :, :, :, 0]) ** 2).mean((0, 2, 4))  # [rx, tx]
    heard = [gain[0, [1, 3]].mean(), gain[1, [0, 2]].mean()]
    watts = network.interference.mean_watts()
    np.testing.assert_allclose(watts, 0.1 * np.array(heard), rtol=1e-12)
    assert not from_sionna(A, TAU, cpu_hz=1e9, reuse_factor=2).interference.mean_watts().any()


def test_normalised_channels_are_noted_and_take_a_path_loss():
    """Without it their SNR is that of 0 dB; with it, or with an SNR, it is right."""
    unit = draws((50, 1, 1, 3, 1, 1, 1), np.sqrt(0.5))
    options = {"cpu_hz": 1e9, "bandwidth_hz": 1e6, "transmit_power_w": 0.2}
    with pytest.warns(Note, match=r"mean of abs\(h\)\^2 is (1\.|0\.9|0\.8).* give path_loss_db"):
        network = from_sionna(unit, **options)
    power = (abs(unit[..., 0, 0, 0]) ** 2).mean((0, 1, 2))
    noise_dbm = -174 + 60
    np.testing.assert_allclose(
        network.mean_snr_db, 10 * np.log10(200 * power) - noise_dbm, atol=1e-9
    )
    chosen = network.with_snr(10.0)
    np.testing.assert_allclose(chosen.mean_snr_db, 10 + 10 * np.log10(2), atol=1e-9)
    np.testing.assert_allclose((abs(chosen.fading.h) ** 2).mean((0, 2)), 1, rtol=1e-5)
    lossy = from_sionna(unit, path_loss_db=[90, 100, 110], **options)
    np.testing.assert_allclose(lossy.gain_db, 10 * np.log10(power) - [90, 100, 110], atol=1e-9)


@pytest.mark.parametrize("amplitude", [1e-3, 1e-6, 1e-9])
def test_small_channels_keep_their_snr_without_a_note(amplitude):
    """Gains of -57, -117 and -177 dB, in single precision too."""
    a = draws((20, 1, 4, 2, 1, 3, 1), amplitude).astype(np.complex64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network = from_sionna(a, cpu_hz=1e9, bandwidth_hz=1e6)
    h = a.astype(complex).sum(5)[:, 0, :, :, 0, 0].transpose(0, 2, 1)
    snr = 0.1 * (abs(h) ** 2).sum(-1) / 10 ** ((-174 + 60 - 30) / 10)
    found = network.draws(Stream(1), range(20))
    np.testing.assert_allclose(found.snr * (abs(found.h) ** 2).sum(-1), snr, rtol=1e-5)


def test_delays_of_paths_without_power_have_no_effect():
    """Sionna pads links with fewer paths: with delays of seconds, or of -1 in its ray tracer."""
    a, tau = A.copy(), TAU.copy()
    a[0, 1, :, 2, :, 3:] = 0
    expected = from_sionna(a, tau, cpu_hz=1e9, frequency_hz=1e6)
    tau[0, 1, 2, 3:] = [-1.0, 2.7]
    for delays in (tau, np.broadcast_to(tau[:, :, None, :, None], UPLINK[:6])):
        network = from_sionna(a, delays, cpu_hz=1e9, frequency_hz=1e6)
        np.testing.assert_array_equal(replayed(network), replayed(expected))


NEAR = {"cpu_hz": 1e9}
UNIT = draws(UPLINK, 1.0)
ZERO = A.copy()
ZERO[1, :, :, 3, :, :, 0] = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give impulse responses a .* or frequency responses h: not both"),
        ({"a": A, "h": A}, "not both"),
        ({"h": A, "tau": TAU}, "tau belongs to impulse responses a"),
        ({"h": A, "frequency_hz": 1e3}, "frequency_hz belongs to impulse responses"),
        ({"h": A, "subcarrier": TIME}, "subcarrier is 2: h has 2, give 0 to 1"),
        ({"a": A, "subcarrier": 0}, "subcarrier belongs to h: give frequency_hz"),
        ({"a": A, "frequency_hz": 1e6}, r"tau is None: give delays \[batch, rx, tx, paths\]"),
        ({"a": A, "mean_power": True}, "tau is None"),
        ({"a": A, "tau": TAU, "mean_power": True, "bandwidth_hz": [1e6, 2e6]}, "bandwidth_hz has"),
        ({"a": np.stack([A.real, A.imag])}, "dtype float64: give complex .* out_type='numpy'"),
        ({"a": A[0, 0]}, r"a has shape .*: give \[batch, rx, rx_ant, tx, tx_ant, paths, time\]"),
        ({"a": A, "tau": TAU[:, :1]}, r"tau has shape \(2, 1, 4, 5\) and a \(2, 2, 3, 4, 1, 5, 2"),
        ({"a": A, "tau": 1e9 * TAU}, "tau contains .*: give delays in seconds"),
        ({"a": A, "direction": "up"}, "direction is 'up': give 'uplink' or 'downlink'"),
        ({"a": A, "direction": "downlink"}, "2 rx are the clients of 4 cells: give .*'uplink'"),
        ({"a": A[:, :, :, :1]}, "1 tx are the clients of 2 cells: give direction='downlink'"),
        ({"a": np.concatenate([A, A], axis=4)}, r"clients have 2 antennas \(tx_ant\)"),
        ({"a": A[:, :, :, ::2]}, "cell 1 has no client: give cell_of"),
        ({"a": A, "cell_of": [0, 0, 0, 0]}, "cell 1 has no client"),
        ({"a": A, "cell_of": [0, 1]}, r"cell_of is for 2 clients, .* give \[4\], from 0 to 1"),
        ({"a": ZERO}, r"h\[2, 3\] is zero, so client 3 would never"),
        ({"a": UNIT}, "are normalised, .* do not tell the cell of a client: give cell_of"),
        ({"a": UNIT, "cell_of": CELL_OF, "reuse_factor": 1}, "reuse_factor needs the gains"),
        ({"a": A, "path_loss_db": 90}, "path_loss_db is given, but the channels have theirs"),
        ({"a": UNIT, "cell_of": CELL_OF, "path_loss_db": -5}, r"path_loss_db\[0\] is -5.*>= this"),
        ({"a": A, "clients_m": np.zeros((4, 2))}, "base_stations_m is None: give the positions"),
        ({"a": A, "line_of_sight": [True] * 4}, "line_of_sight is kept with positions"),
        ({"a": (A, TAU)}, r"^a is a tuple of 2 arrays: give one .* from_sionna\(\*arrays\)"),
        ({"a": A, "gain_db": -90}, "gain_db follows from the channels: omit it"),
        ({"a": A, "antennas": 2}, "antennas follows from the channels: omit it"),
        ({"a": A, "reuse_factor": 0}, "reuse_factor is 0"),
    ],
)
def test_what_does_not_fit_is_one_line(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message) as refused:
        from_sionna(**NEAR | arguments)
    assert "\n" not in str(refused.value)
