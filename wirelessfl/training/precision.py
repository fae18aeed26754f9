"""Precision of matrix products and convolutions in local training: float32, TF32 or bfloat16.

Parameters, updates, their sums and evaluation are float32 throughout. With bfloat16, products take
rounded factors, add up in float32 and return rounded results: of modules as torch's autocast does,
of stacked layers as ``StackedExecutor`` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from channels.concurrency import process_state
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import running

INSTRUCTIONS = {"AMX": "_is_amx_tile_supported", "AVX512-BF16": "_is_avx512_bf16_supported"}
"""Instructions of CPUs for products of bfloat16, and torch's functions that look for them."""
AMPERE = 8
"""Least major compute capability of GPUs that have TF32 and bfloat16."""


def reduced(device: torch.device) -> dict[str, str]:
    """The reduced precisions that a device has, each with the part that has it.

    >>> import torch
    >>> reduced(torch.device("meta"))
    {}
    """
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        part = f"compute capability {major}.{minor}"
        return dict.fromkeys(("tf32", "bf16"), part) if major >= AMPERE else {}
    if device.type != "cpu":
        return {}
    has = [name for name, test in INSTRUCTIONS.items() if getattr(torch.cpu, test, bool)()]
    return {"bf16": " and ".join(has)} if has else {}


def check_precision(precision: str, device: torch.device) -> None:
    """Refuse a precision that a device does not have.

    Raises:
        ConfigError: the device lacks it.
    """
    has = ("float32", *reduced(device))
    if precision in has:
        return
    lacks = f"an NVIDIA GPU of compute capability {AMPERE}.0 or newer"
    if precision == "bf16":
        lacks = f"{lacks}, or a CPU with {' or '.join(INSTRUCTIONS)}"
    choices = " or ".join(f'"{name}"' for name in has)
    raise ConfigError(
        f'precision="{precision}" conflicts with device {device}, because it needs {lacks}: choose '
        f"precision {choices}."
    )


@contextmanager
def tf32(precision: str) -> Iterator[None]:
    """Let GPUs compute products and convolutions inside in TF32, if this is the precision.

    Torch has one setting for all threads, so no other run may compute meanwhile.

    Raises:
        ConfigError: another thread runs, too.
    """
    if precision != "tf32":
        yield
        return
    with process_state:  # other runs wait for it before they start
        if running.inside > 1:
            raise ConfigError(
                'precision="tf32" conflicts with another run in this process, because torch has '
                "one setting for all threads: run one after the other, or in processes."
            )
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        try:
            yield
        finally:
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
