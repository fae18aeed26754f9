"""The range of pixels: images are converted from [-1, 1], and others are refused."""

from dataclasses import replace

import pytest
import torch

from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.choice import DATASETS
from wirelessfl.data.pixels import scaled
from wirelessfl.errors import ConfigError
from wirelessfl.setup import build


def images(low, high):
    """A data set of random images that reaches both ends of its range."""
    inputs = torch.linspace(low, high, 6 * 2 * 3 * 3).reshape(6, 2, 3, 3)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    return Dataset("own", inputs, labels, inputs.flip(0), labels, classes=3)


def own_images(data_dir=None):
    return images(0.0, 1.0)


def test_own_images_in_the_unit_range_are_not_scaled_again():
    """``unit`` refuses them, ``signed`` leaves them alone, and ``standard`` is of any range."""

    def loaded(pixels):
        return DATASETS.find(f"{__name__}:own_images")(pixels=pixels).load(None)

    with pytest.raises(
        ConfigError, match=r"pixels=\"unit\" .* 'own', .* in \[0, 1\] already: leave"
    ):
        loaded("unit")
    assert torch.equal(loaded("signed").train_inputs, own_images().train_inputs)
    signed = scaled(images(-1.0, 1.0), "standard")
    assert torch.allclose(loaded("standard").train_inputs, signed.train_inputs, atol=1e-6)


@pytest.mark.parametrize("pixels", ["unit", "standard"])
def test_given_data_are_used_as_they_are(pixels):
    """Their range is not known, so a range of pixels is refused."""
    settings = Config.from_flags("fedavg", clients=2, rounds=1)
    given = settings.model_copy(update={"dataset": {"pixels": pixels}})
    with pytest.raises(ConfigError, match=rf"data=\.\.\. .* replaces pixels={pixels}: leave this"):
        build(given, data=images(-1.0, 1.0))


def test_images_in_the_signed_range_are_converted():
    unit = scaled(images(-1.0, 1.0), "unit")
    assert torch.allclose(unit.train_inputs, own_images().train_inputs, atol=1e-6)
    assert torch.allclose(unit.test_inputs, own_images().test_inputs, atol=1e-6)


@pytest.mark.parametrize("pixels", ["unit", "standard"])
def test_images_beyond_the_range_are_not_scaled(pixels):
    """Values in the training inputs count, too."""
    for low, high in ((-1.0, 1.5), (0.0, 255.0)):
        data = images(low, high)
        inside = replace(data, test_inputs=data.test_inputs.clamp(-1, 1))
        for given in (data, inside):
            with pytest.raises(ConfigError, match=r"not images in \[-1, 1\]: leave pixels out"):
                scaled(given, pixels)
