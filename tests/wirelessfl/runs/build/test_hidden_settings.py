"""A setting of a user's class that hides an inherited one is refused, unless it is meant."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from wirelessfl.algorithms import find_local
from wirelessfl.algorithms.fadamgc import LocalAdam
from wirelessfl.algorithms.fedprox import FedProx
from wirelessfl.algorithms.hfedavg import Hist
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config


def made(base, **body):
    """A user's subclass with these attributes; those of type float are annotated."""
    annotated = {name: "float" for name, value in body.items() if isinstance(value, float)}
    return dataclass(frozen=True)(
        type("Own", (base,), {"__module__": __name__, "__annotations__": annotated, **body})
    )


@dataclass(frozen=True)
class Softer(FedProx):
    overrides: ClassVar[tuple[str, ...]] = ("mu",)

    mu: float = 0.125


@dataclass(frozen=True)
class Overlapping(FedProx):
    mask_overlap: float = 0.1


def test_an_accident_is_refused_and_names_the_base_class():
    """A new ``eps`` would be that of Adam, and a constant would have no effect."""
    with pytest.raises(ConfigError, match="the setting eps hides that of its base class LocalAdam"):
        made(LocalAdam, eps=0.1)
    with pytest.raises(ConfigError, match=r"lr hides the setting lr .* and has no type"):
        made(LocalAdam, lr=1)
    with pytest.raises(ConfigError, match=r"overrides names 'muu', which is not .* 'mu'"):
        made(FedProx, mu=0.1, overrides=("muu",))
    assert made(LocalAdam, smoothing=0.1)().smoothing == 0.1


def test_a_default_can_be_changed_on_purpose():
    """The flag, the stored setting and the subclass of the subclass have the new default."""
    config = Config.from_flags(f"{__name__}:Softer")
    assert config.algorithm.mu == 0.125
    assert Config.from_flags(f"{__name__}:Softer", mu=0.5).algorithm.mu == 0.5
    assert Config.from_flags("hist", local=f"{__name__}:Softer").algorithm.local.mu == 0.125
    assert made(Softer, other=1.0)().mu == 0.125
    with pytest.raises(ConfigError, match="the setting mu hides that of its base class Softer"):
        made(Softer, mu=0.1)


def test_inside_cells_settings_of_both_algorithms_differ():
    with pytest.raises(ConfigError, match="setting mask_overlap has the name of a setting of alg"):
        find_local(Hist, f"{__name__}:Overlapping")
