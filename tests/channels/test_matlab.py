"""Channels in MATLAB's files: v7.3 (HDF5), structs, transposed axes, one block, damaged files."""

import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io.matlab
from scipy.io import savemat

from channels import Network, Recorded
from channels.matlab import read_mat
from channels.plausible import network_notes

BLOCKS, CLIENTS, ANTENNAS = 5, 4, 2
HEADER = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
DICE = np.random.default_rng(6)
H = 1e-5 * (DICE.normal(size=(BLOCKS, CLIENTS, ANTENNAS, 2)) @ [1, 1j])


def as_matlab(values):
    """How MATLAB stores an array in v7.3: axes reversed, complex numbers as real and imag."""
    values = np.asarray(values)
    if values.dtype.kind == "c":
        parts = np.empty(values.shape, [("real", values.real.dtype), ("imag", values.real.dtype)])
        parts["real"], parts["imag"] = values.real, values.imag
        values = parts
    return values.T


def save_v73(path, kind=b"double", **arrays):
    """A file as MATLAB's ``save(path, ..., '-v7.3')`` writes it; a dict is a struct."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_group("#refs#")
        for name, values in arrays.items():
            fields = values.items() if isinstance(values, dict) else [("", values)]
            for field, array in fields:
                place = file.create_dataset(f"{name}/{field}".strip("/"), data=as_matlab(array))
                place.attrs["MATLAB_class"] = np.bytes_(kind)
            if isinstance(values, dict):
                file[name].attrs["MATLAB_class"] = np.bytes_(b"struct")
    with path.open("r+b") as file:
        file.write(HEADER)
    return path


@pytest.mark.parametrize("name", ["h", "one antenna", "gain", "gain_db", "single"])
def test_v73_has_the_channels_of_v7(tmp_path, name):
    gain = abs(H[..., 0]) ** 2
    values = {"h": H, "one antenna": H[..., 0], "gain": gain, "gain_db": 10 * np.log10(gain)}
    array = values.get(name, H.astype(np.complex64))
    arrays = {name if name.startswith("gain") else "h": array, "about": np.ones((3, 2))}
    savemat(tmp_path / "old.mat", arrays)
    new = save_v73(tmp_path / "new.mat", b"single" if name == "single" else b"double", **arrays)
    read, expected = Recorded.read(new), Recorded.read(tmp_path / "old.mat")
    np.testing.assert_array_equal(read.h, expected.h)
    np.testing.assert_array_equal(read.gain_db, expected.gain_db)
    assert (read.blocks, read.clients) == (BLOCKS, CLIENTS)


def test_one_block_keeps_its_first_axis(tmp_path):
    """MATLAB drops axes of length 1 at the end, but not at the beginning."""
    read = Recorded.read(save_v73(tmp_path / "a.mat", h=H[:1]))
    assert (read.blocks, read.clients, read.antennas) == (1, CLIENTS, ANTENNAS)


def test_transposed_axes_are_noted(tmp_path):
    """An HDF5 file that another program has written with axes in the order of MATLAB's size."""
    read = Recorded.read(save_v73(tmp_path / "a.mat", h=H.T))
    network = Network([0] * CLIENTS, cpu_hz=1e9, **read.links)
    [note] = [note for note in network_notes(network) if "transpose" in note]
    assert note.startswith("recorded channels have 2 blocks and 5 antennas: if their axes")


PARTS = {"re": H.real, "im": H.imag}


@pytest.mark.parametrize("version", ["7", "7.3"])
def test_a_struct_is_one_line(tmp_path, version):
    file = tmp_path / "a.mat"
    if version == "7":
        savemat(file, {"h": PARTS})
    else:
        save_v73(file, h=PARTS)
    with pytest.raises(ValueError, match=r"h is a struct with the fields") as refused:
        Recorded.read(file)
    message = str(refused.value)
    assert message.startswith(str(file))
    assert message.endswith("save one array, e.g. h = h.re + 1i*h.im.")
    assert "re" in message.split("fields")[1].split(":")[0]


def other_file(path):
    other = path.with_name("other.mat")
    save_v73(other, h=H)
    with h5py.File(path, "w", userblock_size=512) as file:
        file["h"] = h5py.ExternalLink(str(other), "/h")


def external_data(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("h", (4, 2), "f8", external=[(str(path) + ".raw", 0, 64)])


def huge(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("h", (10**6, 10**6), "f8", chunks=(100, 100), compression="gzip")


def text(path):
    save_v73(path, b"char", h=np.array([[104, 105]], np.uint16))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: save_v73(path, H=H, n=np.ones(2)), "has the arrays H, n: save one of h"),
        (lambda path: save_v73(path, h=H, gain=abs(H[..., 0])), "has the arrays gain, h: save one"),
        (lambda path: save_v73(path, h=abs(H)), "h has dtype float64: give complex"),
        (lambda path: save_v73(path, b"cell", h=np.ones((2, 2))), "h has dtype object: save an"),
        (text, "h has dtype object: save an array of numbers"),
        (lambda path: path.write_bytes(HEADER), r"cannot be read \("),
        (other_file, r"cannot be read \(h is in another file\)"),
        (external_data, r"cannot be read \(h is in another file\)"),
        (huge, r"cannot be read \(h would have 8000000000000 bytes\)"),
    ],
)
def test_other_files_are_one_line(tmp_path, write, message):
    file = tmp_path / "a.mat"
    write(file)
    content = bytearray(file.read_bytes())
    content[: len(HEADER)] = HEADER
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as refused:
        Recorded.read(file)
    assert str(refused.value).startswith(str(file))
    assert "\n" not in str(refused.value)


def test_without_h5py_the_message_says_what_to_do(tmp_path, monkeypatch):
    file = save_v73(tmp_path / "a.mat", h=H)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ValueError, match=r"needs h5py: run pip install 'wirelessfl.matlab.', or"):
        Recorded.read(file)
    savemat(tmp_path / "old.mat", {"h": H})
    assert Recorded.read(tmp_path / "old.mat").blocks == BLOCKS


def test_a_file_of_matlab_itself():
    """The v7.3 file among SciPy's own tests: linspace(0, 2 pi, 9), 1 x 9 in MATLAB."""
    file = Path(scipy.io.matlab.__file__).parent / "tests/data/testhdf5_7.4_GLNX86.mat"
    if not file.is_file():
        pytest.skip("SciPy is installed without its tests")
    arrays = read_mat(file, ["testdouble"])
    np.testing.assert_allclose(arrays["testdouble"], np.linspace(0, 2 * np.pi, 9)[None])
    with pytest.raises(ValueError, match="has the arrays testdouble: save one of h"):
        Recorded.read(file)
