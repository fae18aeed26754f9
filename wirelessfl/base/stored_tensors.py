"""Files of tensors with a state, as checkpoints are, and checksums of both.

The checksums detect damage, such as flipped bits and lost pages; they do not detect forgery.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from wirelessfl.base.files import stored_name


def write_checkpoint(
    file: Path, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]
) -> None:
    """Write tensors and a state of numbers, strings, lists and dicts.

    Raises:
        OSError, SafetensorError: the file cannot be written.
    """
    from safetensors.torch import save_file  # loads PyTorch

    contiguous = {name: value.contiguous().cpu() for name, value in tensors.items()}
    note = json.dumps({**state, "tensors_checksum": checksum(sorted(contiguous.items()))})
    save_file(contiguous, file, metadata={"state": note, "checksum": _checksum_of(note)})


def read_state(file: Path) -> dict[str, Any]:
    """The state in a checkpoint, without reading its tensors.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    with open_tensors(file, "numpy") as checkpoint:  # loads no PyTorch
        return _state(checkpoint)


def read_checkpoint(
    file: Path, selects: Callable[[str], bool] = lambda name: True
) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors and the state in a checkpoint.

    Args:
        file: the checkpoint.
        selects: which tensors to return, by name; all of them are checked, one after the other.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is damaged.
    """
    tensors: dict[str, torch.Tensor] = {}
    with open_tensors(file) as checkpoint:
        state = _state(checkpoint)

        def each() -> Iterator[tuple[str, torch.Tensor]]:
            for name in sorted(checkpoint.keys()):
                value = checkpoint.get_tensor(name)
                if selects(name):
                    tensors[name] = value
                yield name, value

        if checksum(each()) != state.get("tensors_checksum"):
            raise ValueError("its tensors differ from their checksum")
    return tensors, state


@contextmanager
def open_tensors(file: Path, framework: str = "pt") -> Iterator[Any]:
    """Open a file of tensors of a stored folder, whatever its bytes are.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged.
    """
    try:
        with stored_name(file) as name, safe_open(name, framework=framework) as tensors:
            yield tensors
    except (SafetensorError, RuntimeError, TypeError, AttributeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from error


def _state(checkpoint: Any) -> dict[str, Any]:
    """The state in an open checkpoint."""
    metadata = checkpoint.metadata() or {}
    note = metadata.get("state", "null")
    if metadata.get("checksum") != _checksum_of(note):
        raise ValueError("its state differs from its checksum")
    state = json.loads(note)
    if not isinstance(state, dict):
        raise ValueError("it has no state of a run")
    return state


def _checksum_of(text: str) -> str:
    return str(zlib.crc32(text.encode()))


def checksum(tensors: Iterable[tuple[str, torch.Tensor]]) -> int:
    """Checksum of the names, types, shapes and values of contiguous tensors, sorted by name."""
    total = 0
    for name, value in tensors:
        total = zlib.crc32(repr((name, value.dtype, tuple(value.shape))).encode(), total)
        flat = value.as_strided((value.numel(),), (1,))  # the stride of one element may be 0
        total = zlib.crc32(flat.view(torch.uint8).numpy().data, total)
    return total
