"""Refuses modules whose forward pass does more than compute outputs from parameters and samples.

Clients share the module, and have copies of its registered parameters only. Effects would leak
between them and differ between executors; tensors that are not registered would never be trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import described
from wirelessfl.base.torch_state import other_states, torch_state
from wirelessfl.training.objective import Objective

TRIES = 5
"""Maximum number of passes in which a module is seen to draw random numbers: in some of them, other
threads may have drawn from the global generators."""


def trial_pass(objective: Objective, x: Tensor) -> tuple[Tensor, bool]:
    """Run the module on samples ``x`` [batch, ...] in training and in evaluation mode.

    Returns:
        The output in training mode, and whether it draws from torch's global generator. The module
        is left in training mode.

    Raises:
        ConfigError: a parameter is not finite, or the module does not run, changes its buffers or
            parameters, draws random numbers in evaluation mode or other than by torch's global
            generator, or returns different outputs for the same samples.
    """
    module, name = objective.module, type(objective.module).__name__
    for key, parameter in module.named_parameters():
        if not bool(torch.isfinite(parameter).all()):
            raise ConfigError(
                f"model {name} starts with values of its parameter {key!r} that are not finite: "
                "initialise it."
            )
    before = _State(module)
    module.eval()
    _, draws = _run(module, x)
    if draws:
        raise ConfigError(
            f"model {name} draws random numbers in evaluation, so tests would not be repeatable: "
            "pass training=self.training to F.dropout, or use nn.Dropout."
        )
    module.train()
    output, draws = _run(module, x)
    again, _ = _run(module, x)
    before.check(module, x)
    if not _equal(output, again):
        raise ConfigError(
            f"model {name} returns different outputs for the same samples, parameters and state of "
            "torch's global generator, but clients share the module: do not keep state in it, and "
            "draw from torch's global generator only."
        )
    _try_large_parameters(objective, x)
    return output, draws


def output_of(module: nn.Module, x: Tensor) -> Tensor:
    """Output of ``module`` for samples ``x`` [batch, ...], without gradients."""
    output, _ = _run(module, x)
    if not isinstance(output, Tensor) or output.shape[:1] != (len(x),):
        raise ConfigError(
            f"model {type(module).__name__} returns {described(output)} for {len(x)} samples: "
            "return outputs [batch, ...]."
        )
    return output


def _run(module: nn.Module, x: Tensor) -> tuple[Tensor, bool]:
    """Output of ``module`` without gradients, and whether it draws from torch's global generator.

    The generator is restored.
    """
    with torch.random.fork_rng(), torch.no_grad():
        for _ in range(TRIES):
            before, output = torch_state(x), _called(module, x)
            draws = not torch.equal(before, torch_state(x))
            if not draws:
                break
        return output, draws


def _called(module: nn.Module, x: Tensor) -> Tensor:
    try:
        output: Tensor = module(x.clone())  # a copy: it may change its input
    except Exception as error:  # a user's forward may raise anything
        texts, cause = not x.is_floating_point(), " ".join(str(error).split())
        raise ConfigError(
            f"model {type(module).__name__} does not run on samples of shape "
            f"{tuple(x.shape[1:])}{', which are token ids' * texts}: "
            f"{cause.removesuffix('.') or type(error).__name__}. Choose a model of "
            f"{'texts, such as text-mean' if texts else 'samples of this shape'}."
        ) from error
    return output


def _draws_elsewhere(module: nn.Module, x: Tensor) -> bool:
    """Whether the module draws from the generators of Python or NumPy in several passes."""
    for _ in range(TRIES):
        before = other_states()
        with suppress(ConfigError):
            _called(module, x)
        if before == other_states():
            return False
    return True


def _equal(output: object, again: object) -> bool:
    """Whether two outputs differ only by rounding; True for outputs other than tensors."""
    if not isinstance(output, Tensor) or not isinstance(again, Tensor):
        return True
    return output.shape == again.shape and torch.allclose(output, again, 1e-3, 1e-5, equal_nan=True)


def _try_large_parameters(objective: Objective, x: Tensor) -> None:
    """Raise if forward limits its parameters, which may have no effect on the initial values."""
    flat = 10.0 * objective.spec.from_module(objective.module) + 1.0
    with objective.holding(flat):
        before = _State(objective.module)
        with suppress(ConfigError):  # the module may refuse such values
            _run(objective.module, x)
        before.check(objective.module, x)


class _State:
    """The state that a forward pass must not change.

    Args:
        module: the module, whose values are copied.
    """

    def __init__(self, module: nn.Module) -> None:
        self._buffers = {name: value.clone() for name, value in module.named_buffers()}
        parameters = dict(module.named_parameters())
        self._memory = {name: _memory(value) for name, value in parameters.items()}
        # Operations on .data change values only. Frozen parameters may be large.
        self._values = {
            name: value.detach().clone()
            for name, value in parameters.items()
            if value.requires_grad
        }
        self._drawn = other_states()

    def check(self, module: nn.Module, x: Tensor) -> None:
        """Raise if the module has changed its buffers or parameters, or another generator."""
        name = type(module).__name__
        for key, value in module.named_buffers():
            if key not in self._buffers or not torch.equal(value, self._buffers[key]):
                raise ConfigError(
                    f"model {name} changes its buffer {key!r} in training, but clients share "
                    "buffers: store such state in parameters, or remove it."
                )
        for key, parameter in module.named_parameters():
            same = self._memory.get(key) == _memory(parameter)
            if not same or not torch.equal(parameter, self._values.get(key, parameter)):
                raise ConfigError(
                    f"model {name} changes its parameter {key!r} in forward, but executors train "
                    "several copies of it: compute the limited value from the parameter without "
                    "storing it, e.g. by torch.renorm or clamp, and do not use max_norm."
                )
        if self._drawn != other_states() and _draws_elsewhere(module, x):
            raise ConfigError(
                f"model {name} draws from the generator of Python's random or of NumPy, which runs "
                "do not seed: use wirelessfl.models.StreamDropout, or torch's global generator."
            )


def _memory(parameter: nn.Parameter) -> tuple[int, int]:
    """Version of a parameter and the address of its values."""
    return parameter._version, parameter.data_ptr()


def check_registered(module: nn.Module, loss: Tensor, again: Tensor) -> None:
    """Raise if the loss depends on a trainable tensor that is not a parameter of ``module``.

    Args:
        loss: its loss, with the graph of its gradients.
        again: the loss of a second forward pass. A tensor of one pass alone is none to be trained.
    """
    registered = {id(parameter) for parameter in module.parameters()}
    lasting = {id(leaf) for leaf in _leaves(again)} - registered
    for leaf in _leaves(loss):
        if id(leaf) not in lasting:
            continue
        name, remedy = _found(module, leaf)
        raise ConfigError(
            f"model {type(module).__name__} does not register {name} as a parameter, so it would "
            f"never be trained: use {remedy}, or requires_grad=False for a constant."
        )


def _leaves(loss: Tensor) -> Iterator[Tensor]:
    """The tensors for which ``backward`` would accumulate gradients."""
    seen, nodes = set[Any](), [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            yield leaf
        nodes += [following for following, _ in node.next_functions]


def _found(module: nn.Module, leaf: Tensor) -> tuple[str, str]:
    """The name of a tensor in the attributes of a module, and how to register it."""
    for prefix, layer in module.named_modules():
        for name, value in vars(layer).items():
            if name.startswith("_"):
                continue
            for place, inside in _entries(f"{prefix}.{name}" if prefix else name, value):
                form = "" if inside is value else "Dict" if isinstance(value, Mapping) else "List"
                if inside is leaf:
                    return repr(place), f"nn.Parameter{form}"
                if isinstance(inside, nn.Module) and any(p is leaf for p in inside.parameters()):
                    return f"the layer {place!r}", f"nn.Module{form}"
    return f"a trainable tensor of shape {list(leaf.shape)}", "nn.Parameter in the module"


def _entries(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The modules and tensors in nested lists, tuples and dicts, with their places."""
    if isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from _entries(f"{place}[{index}]", entry)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _entries(f"{place}[{key!r}]", entry)
    elif isinstance(value, Tensor | nn.Module):
        yield place, value
