"""Programs of other packages that whole commands are timed beside: they learn, and alike."""

import gzip
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import peers
from benchmarks.whole_command import PACKAGES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Images of two rows of light, whose place is the label, as files of Fashion-MNIST's format."""
    monkeypatch.setattr(peers, "CLIENTS", 3)
    monkeypatch.setattr(peers, "SAMPLES", 100)
    monkeypatch.setattr(peers, "LR", 0.2)
    random = np.random.default_rng(0)
    for part, count in (("train", 300), ("t10k", 100)):
        labels = random.integers(0, 10, count).astype(np.uint8)
        images = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label + 4 : 2 * label + 6] = 255
        for kind, header, values in (("images-idx3", 16, images), ("labels-idx1", 8, labels)):
            with gzip.open(tmp_path / f"{part}-{kind}-ubyte.gz", "wb", compresslevel=1) as file:
                file.write(bytes(header) + values.tobytes())
    return tmp_path


@pytest.mark.parametrize("peer", peers.PEERS)
def test_learns(peer, folder):
    """The places of the light are learned within ten rounds."""
    if find_spec(PACKAGES.get(peer, "torch")) is None or peer == "Flower":
        pytest.skip("needs its package, and for Flower minutes")
    assert peers.PEERS[peer]("fcnn", 10, folder) > 0.9


@pytest.mark.parametrize("peer", ["PyTorch, indexed", "JAX vmap"])
def test_lenet_learns(peer, folder):
    """The convolutions and their pooling lead to the fully connected layers."""
    if find_spec(PACKAGES.get(peer, "torch")) is None:
        pytest.skip("needs its package")
    assert peers.PEERS[peer]("lenet5", 5, folder) > 0.3
