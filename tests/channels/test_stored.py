"""A stored network is the same network, bit for bit."""

import io
import zipfile
from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels import (
    Doppler,
    Hexagonal,
    Network,
    Rayleigh,
    Recorded,
    Rician,
    Stream,
    Umi,
    load_network,
    placed_network,
    save_network,
    section_vi_c,
)
from channels.stored import network_arrays

CELLS = section_vi_c(cells=2, clients=6, stream=Stream(1))
H = 1e-5 * Stream(2).generator().standard_normal((5, 6, 2, 2)).view(complex)[..., 0]
NETWORKS = {
    "section VI-C": CELLS,
    "rician": replace(CELLS, fading=Rician(3.3), antenna_correlation=0.3 + 0.2j),
    "doppler": replace(CELLS, fading=Doppler(Rician(3.3), 20.0, 0.02, "ar1")),
    "recorded": Network([0, 0, 0, 1, 1, 1], cpu_hz=1e9, **Recorded(H).links),
    "snr": Network.from_snr([0, 1], cpu_hz=[1e9, 2e9], snr_db=[3.1, 4.7], bandwidth_hz=[1e6, 2e6]),
    "power": replace(
        Network.from_snr([0, 0], cpu_hz=1e9, snr_db=0.1, path_gain_db=[-3, 4]),
        transmit_power_w=[0.2, 0.3],
    ),
    "interference": placed_network(
        Hexagonal(), Umi(), cells=3, clients=9, stream=Stream(1), cpu_hz=1e9, reuse_factor=1
    ),
    "active": placed_network(
        *(Hexagonal(), Umi()),
        cells=3,
        clients=9,
        stream=Stream(1),
        cpu_hz=1e9,
        reuse_factor=1,
        interferers="active",
        interference_watts=[[1e-13, 0, 2e-13]],
    ),
    "part": CELLS.of([1, 3]),
    "part with watts": replace(
        CELLS, interference_watts=1e-13 * np.arange(2 * CELLS.clients).reshape(2, -1)
    ).of([1, 3]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_stored_network_draws_the_same_channels(name, tmp_path):
    network = NETWORKS[name]
    save_network(network, tmp_path / "network.npz")
    found = load_network(tmp_path / "network.npz")
    for index in (0, 3):
        one, two = network.draw(Stream(5), index), found.draw(Stream(5), index)
        assert np.array_equal(one.h, two.h)
        assert np.array_equal(one.snr_hz, two.snr_hz)
    before, after = network_arrays(network), network_arrays(found)
    assert before.keys() == after.keys()
    for key, array in before.items():
        assert array.dtype == after[key].dtype
        assert np.array_equal(array, after[key]), key
    assert np.array_equal(network.mean_snr_db, found.mean_snr_db)
    assert type(network.fading) is type(found.fading)


@dataclass(frozen=True)
class Own:
    def draw(self, stream, index, clients, root):
        return Rayleigh().draw(stream, index, clients, root)


def test_what_cannot_be_stored_says_why(tmp_path):
    file = tmp_path / "network.npz"
    with pytest.raises(ValueError, match=r"fading model .*Own is not one of channels"):
        save_network(replace(CELLS, fading=Own()), file)
    large = Network(np.zeros(10**6 + 1, dtype=int), cpu_hz=1e9, gain_db=-100)
    with pytest.raises(ValueError, match="it has 1000001 clients"):
        save_network(large, file)
    with pytest.raises(TypeError, match=r"network is 3: give a channels\.Network"):
        save_network(3, file)
    assert not file.exists()


@pytest.mark.parametrize("content", [b"", b"no network", None])
def test_files_of_something_else_are_refused(content, tmp_path):
    file = tmp_path / "network.npz"
    if content is None:
        np.savez(file, a=np.ones(3))
    else:
        file.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as a network"):
        load_network(file)
    with pytest.raises(ValueError, match="cannot be read as a network"):
        load_network(tmp_path / "nothing.npz")


def test_every_flipped_bit_is_noticed_or_harmless(tmp_path):
    """One of every eleventh byte: of headers, compressed arrays and the list of members."""
    save_network(CELLS, tmp_path / "network.npz")
    whole, before = (tmp_path / "network.npz").read_bytes(), network_arrays(CELLS)
    refused = 0
    for place in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place * 5 % 8
        try:
            found = network_arrays(load_network(io.BytesIO(damaged)))
        except ValueError:
            refused += 1
            continue
        assert found.keys() == before.keys()
        assert all(np.array_equal(found[key], array) for key, array in before.items()), place
    assert refused > len(whole) / 11 / 2


def shape_of(shape):
    """A file whose array claims another shape than its bytes have."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def header(text):
    """A file whose array has this header."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "member",
    [
        *(b"", shape_of((10**15,)), shape_of((3, 10**30)), b"\x93NUMPY\x09\x00"),
        *(header(b"{'shape': ("), header(b"if 1:\n  a\n b")),
    ],
    ids=["empty", "more bytes than there are", "overflow", "version", "open", "indented"],
)
def test_impossible_arrays_are_one_line(member, tmp_path):
    save_network(CELLS, tmp_path / "network.npz")
    with zipfile.ZipFile(tmp_path / "network.npz", "a") as archive:
        archive.writestr("more.npy", member)
    with pytest.raises(ValueError, match="cannot be read as a network") as caught:
        load_network(tmp_path / "network.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_of_compression_are_refused(method, tmp_path):
    """Errors of their damaged files are no ``ValueError``."""
    with zipfile.ZipFile(tmp_path / "network.npz", "w", method) as archive:
        archive.writestr("settings.npy", shape_of((3,)))
    with pytest.raises(ValueError, match=r"settings\.npy is compressed by a method that NumPy"):
        load_network(tmp_path / "network.npz")


def test_paths_may_begin_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save_network(CELLS, "~/network.npz")
    assert load_network("~/network.npz").clients == CELLS.clients


def test_an_archive_that_unpacks_to_much_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("channels.npz.LARGE", 10**5)
    np.savez_compressed(tmp_path / "network.npz", settings=np.zeros(10**5))
    with pytest.raises(ValueError, match=r"settings\.npy would have 800128 bytes"):
        load_network(tmp_path / "network.npz")
