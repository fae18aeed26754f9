"""The hidden neurons of a model that submodels may omit: of the whole model, or of some layers.

If the whole model is narrowed, a group of neurons that cannot be omitted raises an error, unless
the whole group must be kept anyway (e.g. a softmax after the logits). If only some layers are
narrowed, all other groups are kept whole.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import suggestion
from wirelessfl.models.submodels.flat import ParamSpec
from wirelessfl.models.submodels.neurons import Group, NeuronFinder, NeuronMap
from wirelessfl.models.submodels.operations import Tracer
from wirelessfl.models.submodels.tracing import PRODUCERS, NeuronTracker, first_sentence

REMEDY = (
    "Choose mlp, fcnn, lenet5, cifar-cnn, fedast-cnn, gn-cnn, resnet18 or resnet34, or a model of "
    "linear layers, convolutions, norms and activations."
)
LISTED = 12
"""Largest number of layers that a message lists."""


def find_neurons(
    module: nn.Module, spec: ParamSpec, sample: Tensor, layers: Sequence[str] | None = None
) -> NeuronMap:
    """Find the hidden neurons and channels of ``module`` that a submodel may omit.

    Args:
        module: model of linear layers, convolutions without groups, group norms, batch norms
            without running statistics, activations, pooling, flattening and sums. It is not
            changed.
        sample: [batch, ...], a few inputs on the module's device; the values do not matter.
        layers: names of the linear layers and convolutions whose neurons may be omitted. All other
            neurons are kept, so the rest of the model may contain any layers. None for all.

    Returns:
        The neurons, in the order of computation, except logits, channels that are summed with the
        inputs, and layers with a single neuron per group of a group norm.

    Raises:
        ConfigError: the model cannot be traced or run, has an operation that needs all neurons of a
            hidden layer, or has no removable neurons; or a layer in ``layers`` is unknown or must
            be kept whole.
    """
    if layers is not None:
        return _Explored.of(module, spec, sample, partly=True).some(layers)
    try:
        return _Explored.of(module, spec, sample, partly=False).all()
    except _NotAsAWholeError as error:
        name, others = type(module).__name__, list[str]()
        with contextlib.suppress(ConfigError):
            others = _Explored.of(module, spec, sample, partly=True).narrowable
        remedy = f"Choose layers from {_listed(others)}." if others else REMEDY
        raise ConfigError(
            f"model {name} cannot be narrowed as a whole: {error}. {remedy}"
        ) from error


class _NotAsAWholeError(Exception):
    """Some neurons of the model cannot be omitted; the message says which, and why."""


@dataclass(frozen=True, eq=False)
class _Explored:
    """The groups of neurons of a model.

    Args:
        name: name of the model.
        finder: recorded the groups.
        uses: by parameter, multiplications per sample with each entry.
        opaque: names of modules that could not be traced.
    """

    name: str
    module: nn.Module
    finder: NeuronFinder
    uses: Mapping[str, int]
    opaque: frozenset[str]

    @classmethod
    def of(cls, module: nn.Module, spec: ParamSpec, sample: Tensor, *, partly: bool) -> _Explored:
        """Trace ``module`` and run it on ``sample``."""
        name, opaque = type(module).__name__, set[str]()
        devices = [sample.device] if sample.is_cuda else []
        with torch.random.fork_rng(devices), torch.no_grad():
            copied = copy.deepcopy(module).eval()  # forward may change the module
            while True:
                tracer = Tracer(opaque)
                try:
                    graph = tracer.trace(copied)
                    break
                except Exception as error:  # a user's forward may raise anything when traced
                    if partly and tracer.failed:
                        opaque.add(tracer.failed)
                        continue
                    why = f"cannot be traced to find its neurons ({first_sentence(error)})"
                    if tracer.failed:
                        raise _NotAsAWholeError(f"layer {tracer.failed!r} {why}") from error
                    raise ConfigError(f"model {name} {why}. {REMEDY}") from error
            finder, uses = NeuronFinder(copied, spec), Counter[str]()
            # forward may change its input
            NeuronTracker(finder, graph, uses, tracer.opaque).run(sample.clone())
        return cls(name, module, finder, dict(uses), tracer.opaque)

    def all(self) -> NeuronMap:
        """All neurons that a submodel may omit."""
        for group in self.finder.groups:
            why = self._why_not(group)
            if why:
                raise _NotAsAWholeError(
                    f"neurons of layer {group.name!r} cannot be omitted, because {why}"
                )
        layers = tuple(g.neurons() for g in self.finder.groups if g.blocks < g.width)
        if not layers:
            raise ConfigError(
                f"model {self.name} has no hidden neurons that a submodel could omit. {REMEDY}"
            )
        return NeuronMap(self.finder.spec, layers, self.uses)

    def some(self, names: Sequence[str]) -> NeuronMap:
        """The neurons of the layers ``names``."""
        if not names:
            raise ConfigError(f"layers is empty: name at least one.{self._choices()}")
        chosen = set[int]()
        for place, name in enumerate(names):
            if name in names[:place]:
                raise ConfigError(f"layers names {name!r} twice: name each layer once.")
            why = self._why_not_named(name)
            if why:
                hint = "" if name in self.modules else self._hint(name)
                raise ConfigError(
                    f"layers: {name!r} of model {self.name} {why}.{hint}{self._choices()}"
                )
            chosen.add(self.finder.produced[name].root.number)
        layers = tuple(g.neurons() for g in self.finder.groups if g.number in chosen)
        return NeuronMap(self.finder.spec, layers, self.uses)

    @cached_property
    def modules(self) -> dict[str, nn.Module]:
        """The parts of the model by name, without the model itself."""
        return {name: part for name, part in self.module.named_modules() if name}

    @property
    def narrowable(self) -> list[str]:
        """Layers whose neurons can be omitted, without those that another layer's sum joins."""
        return [
            group.name
            for group in self.finder.groups
            if not self._why_not(group) and group.blocks < group.width
        ]

    def _why_not(self, group: Group) -> str:
        return group.refusal or self.finder.why_not_sliced(group.slots)

    def _why_not_named(self, name: str) -> str:
        """Why the neurons of a named layer cannot be omitted; empty if they can."""
        modules = self.modules
        if name not in modules:
            return "does not exist"
        group = self.finder.produced.get(name)
        if group is None or type(modules[name]) not in PRODUCERS:
            inside = next((o for o in self.opaque if name.startswith(f"{o}.")), None)
            if inside is not None:
                return f"is a part of {inside!r}, which cannot be traced and is kept whole"
            kind = type(modules[name]).__name__
            if type(modules[name]) in PRODUCERS:
                return "is not called by the model as a separate layer"
            return f"is of type {kind}: only linear layers and convolutions have neurons"
        group = group.root
        if group.whole:
            return (
                "must be kept whole, because its neurons are outputs of the model or are summed "
                "with inputs"
            )
        why = self._why_not(group)
        if why:
            return f"cannot be narrowed, because {why}"
        if group.blocks >= group.width:
            return "cannot be narrowed, because each group of a norm has only one of its neurons"
        return ""

    def _hint(self, name: str) -> str:
        """The layer that is meant by a wrong name, for messages."""
        ends = [layer for layer in self.narrowable if name and layer.endswith(f".{name}")]
        return f" Do you mean {ends[0]!r}?" if ends else suggestion(name, self.narrowable)

    def _choices(self) -> str:
        layers = self.narrowable
        return f" Choose from {_listed(layers)}." if layers else f" It has none. {REMEDY}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
