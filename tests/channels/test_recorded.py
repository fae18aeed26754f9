"""Recorded channels: what is read, what is refused, and what a network replays."""

import math

import numpy as np
import pytest
from scipy.io import savemat

from channels import ChannelDraw, Network, Note, Recorded, Stream, link_budget
from channels.fading import Fading, FadingByClient
from channels.plausible import network_notes

BLOCKS, CLIENTS, ANTENNAS = 3, 4, 2
CELLS = [0, 0, 1, 1]


def complex_channels(seed=0, shape=(BLOCKS, CLIENTS, ANTENNAS)):
    """Channels of about -100 dB, with another mean for each client."""
    dice = np.random.default_rng(seed)
    h = dice.normal(size=shape) + 1j * dice.normal(size=shape)
    return h * 1e-5 * (1 + np.arange(shape[1]))[:, None]


def network_of(recorded, **others):
    return Network(CELLS, cpu_hz=1e9, **recorded.links, **others)


def test_a_network_replays_the_recorded_channels():
    """The received power is that of the recording, in each block, which repeat from the start."""
    h = complex_channels()
    recorded = Recorded(h)
    assert isinstance(recorded, Fading)
    assert isinstance(recorded, FadingByClient)
    network = network_of(recorded, transmit_power_w=0.2, noise_figure_db=7.0)
    np.testing.assert_allclose(10 ** (network.gain_db / 10), (abs(h) ** 2).mean((0, 2)))
    draws = network.draws(Stream(5), range(2 * BLOCKS))
    noise_w = 10 ** ((-174 + 10 * np.log10(9e6) + 7 - 30) / 10)
    received = draws.snr * (abs(draws.h) ** 2).sum(-1)
    expected = 0.2 * (abs(h) ** 2).sum(-1) / noise_w
    np.testing.assert_allclose(received, np.concatenate([expected, expected]), rtol=1e-6)
    some = network.draw(Stream(9), 4, clients=[1, 3])  # no stream matters
    np.testing.assert_array_equal(some.h, draws.h[4][[1, 3]])


def test_uploads_at_any_time_have_the_block_of_their_number():
    h = complex_channels()
    network = network_of(Recorded(h))
    assert network.gain_by_client
    for number, client in ((0, 0), (1, 3), (4, 2)):
        own = (abs(h[number % BLOCKS, client]) ** 2).sum()
        gain = network.draw_gain(Stream(1), number, client)
        assert gain == pytest.approx(own / 10 ** (network.gain_db[client] / 10), rel=1e-6)


def test_gains_are_channels_of_one_antenna():
    gain = np.random.default_rng(3).uniform(1e-12, 1e-9, (BLOCKS, CLIENTS))
    for recorded in (Recorded.of_gains(gain), Recorded.of_gains_db(10 * np.log10(gain))):
        assert (recorded.blocks, recorded.clients, recorded.antennas) == (BLOCKS, CLIENTS, 1)
        found = abs(recorded.h[..., 0]) ** 2 * 10 ** (recorded.gain_db / 10)
        np.testing.assert_allclose(found, gain, rtol=1e-6)


@pytest.mark.parametrize("name", ["h", "gain", "gain_db", "one antenna"])
@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_files_of_numpy_and_matlab_are_read(tmp_path, name, suffix):
    h = complex_channels()
    gain = abs(h[..., 0]) ** 2
    values = {"h": h, "gain": gain, "gain_db": 10 * np.log10(gain), "one antenna": h[..., 0]}[name]
    expected = {"h": h, "one antenna": h[..., :1]}.get(name, np.sqrt(gain)[..., None])
    file, arrays = tmp_path / f"a{suffix}", {"h" if name == "one antenna" else name: values}
    arrays["note"] = np.array([1.0])
    np.savez(file, **arrays) if suffix == ".npz" else savemat(file, arrays)
    read = Recorded.read(file)
    np.testing.assert_array_equal(read.h, Recorded(expected.astype(complex)).h)
    np.testing.assert_allclose(read.gain_db, Recorded(expected.astype(complex)).gain_db)


def changed(place, value):
    h = complex_channels()
    h[place] = value
    return h


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"H": complex_channels()}, "has the arrays H: save one of h"),
        ({"h": complex_channels(), "gain": np.ones((3, 4))}, "has the arrays h, gain: save one"),
        ({"h": complex_channels()[0, 0]}, r"h has shape \(2,\): give \[blocks, clients, antennas"),
        ({"h": abs(complex_channels())}, "h has dtype float64: give complex channels"),
        ({"h": changed((1, 2, 0), np.nan)}, r"h\[1, 2, 0\] is \(?nan"),
        ({"h": changed((1, 2), 0)}, r"h\[1, 2\] is zero, so client 2 would never"),
        ({"h": 1e5 * complex_channels()}, "mean gain of client 3 is .* dB, more than -20 dB"),
        ({"h": np.array(["a"])}, "h has dtype <U1: save an array of numbers"),
        ({"h": np.zeros((3, 4, 2), [("re", float), ("im", float)])}, "fields re, im: save one"),
        ({"h": np.array([None])}, r"cannot be read \(Object arrays"),
        ({"gain": np.full((3, 4), -93.0)}, r"gain\[0, 0\] is -93: .* in dB belong in gain_db"),
        ({"gain": np.full((3, 4), 93.0)}, "mean gain of client 0 is 19.68 dB"),
        ({"gain": complex_channels()[..., 0]}, "gain has shape .* complex128: give real"),
        ({"gain": np.full((3, 4, 2, 1), 1e-9)}, r"gain has shape \(3, 4, 2, 1\)"),
        ({"gain": np.full((3, 4), np.inf)}, r"gain\[0, 0\] is inf: give finite"),
        ({"gain_db": np.full((3, 4), 1e-9)}, r"gain_db\[0, 0\] is 1e-09: give dB within"),
        ({"gain_db": np.full((3, 4), -0.1)}, "gain_db is -0.1 and similar, which look like ratios"),
        ({"gain_db": np.full((3, 4), 93.0)}, r"gain_db\[0, 0\] is 93: give .* minus the path loss"),
    ],
)
def test_wrong_channels_are_one_error_that_names_the_file(tmp_path, arrays, message):
    file = tmp_path / "channels.npz"
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match=message) as refused:
        Recorded.read(file)
    assert str(refused.value).startswith(str(file))
    assert "\n" not in str(refused.value)


def test_unreadable_files(tmp_path):
    for name, content, message in (
        ("cut.mat", b"abc", "cannot be read"),
        ("cut.npz", b"abc", "cannot be read"),
        ("a.csv", b"1,2", "has another format: give a .npz"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            Recorded.read(tmp_path / name)
    with pytest.raises(ValueError, match="there is no file"):
        Recorded.read(tmp_path / "none.npz")


def test_a_network_of_another_size_is_refused():
    recorded = Recorded(complex_channels())
    wrong = Network(CELLS, cpu_hz=1e9, gain_db=-90.0, fading=recorded, antennas=3)
    with pytest.raises(ValueError, match="have 4 clients and 2 antennas"):
        wrong.draw(Stream(1))
    with pytest.raises(
        ValueError, match=r"\[3, 4, 2\], and the network has 5 clients. Are the axes"
    ):
        Network([0] * 5, cpu_hz=1e9, gain_db=-90.0, fading=recorded, antennas=2)


@pytest.mark.parametrize(
    ("blocks", "antennas", "noted"), [(3, 5, True), (1, 5, False), (5, 5, False)]
)
def test_transposed_axes_are_noted(blocks, antennas, noted):
    """MATLAB's [antennas, clients, blocks] has as many clients."""
    channels = Recorded(np.full((blocks, 4, antennas), 1e-5 + 0j))
    notes = [note for note in network_notes(network_of(channels)) if "transpose" in note]
    assert len(notes) == noted
    assert all(f"{blocks} blocks and {antennas} antennas" in note for note in notes)


def arrays(users, rx, tx, seed=0):
    """Receive arrays [users, rx, tx] with path losses from 80 to 120 dB."""
    random = np.random.default_rng(seed)
    h = random.standard_normal((users, rx, tx, 2)).view(complex)[..., 0]
    return 10 ** (-random.uniform(80, 120, (users, 1, 1)) / 20) * h


def test_receive_arrays_are_refused_or_noted():
    """Clients have one antenna: [users, rx, tx] is not read as a batch of blocks."""
    refused = r"A client has one antenna: of receive arrays \[users, rx, tx\], give"
    h = arrays(6, 4, 2)
    with pytest.raises(
        ValueError, match=rf"\[6, 4, 2\], and the network has 6 clients\. {refused}"
    ):
        Network([0] * 6, cpu_hz=1e9, **Recorded(h).links)
    with pytest.raises(ValueError, match=refused):
        Recorded(h[None, None])
    network = Network([0] * 6, cpu_hz=1e9, gain_db=-90.0, antennas=4)
    with pytest.raises(ValueError, match=rf"must be \(6, 4\), clients and antennas\. {refused}"):
        ChannelDraw(network, h)
    with pytest.raises(ValueError, match=r"network has 5 clients\. Are the axes permuted\?"):
        Network([0] * 5, cpu_hz=1e9, **Recorded(h).links)
    # One transmit antenna, and a precoder, as the message says.
    precoder = np.ones((6, 2)) / math.sqrt(2)
    for one in (h[..., 0], (h @ precoder[..., None])[..., 0]):
        network = Network([0] * 6, cpu_hz=1e9, **Recorded(one[None]).links)
        gain = network.draw(Stream(1)).gain * 10 ** (network.gain_db / 10)
        np.testing.assert_allclose(gain, (abs(one) ** 2).sum(-1), rtol=1e-5)


def test_as_many_receive_antennas_as_users_are_noted():
    """The levels are those of the first axis; recordings of blocks give no note."""
    network = Network([0] * 6, cpu_hz=1e9, **Recorded(arrays(6, 6, 2)).links)
    with pytest.warns(Note, match=r"if their axes are \[users, rx, tx\], they are receive arrays"):
        link_budget(network)
    blocks = np.swapaxes(arrays(6, 6, 2), 0, 1)
    link_budget(Network([0] * 6, cpu_hz=1e9, **Recorded(blocks).links))
