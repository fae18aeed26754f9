"""Pretrained models and tokenizers from a local folder or the Hugging Face hub."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded

HUB_MODEL = "gpt2"
"""The default model: the smallest GPT-2, with 124 million parameters."""


def language_package(name: str, wanted_by: str) -> Any:
    """Import the package ``name`` of the extra ``language``.

    Args:
        name: name of the package.
        wanted_by: the model or setting that needs it, for the message.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f'{wanted_by} needs the package {name}: {error}. Install it: pip install ".[language]"'
        ) from error


def pretrained_folder(
    setting: str, name: str, needs: Sequence[Sequence[str]], patterns: Sequence[str]
) -> Path:
    """The folder with the files of ``name``; files from the hub are downloaded once.

    Files that were downloaded before are used without contacting the hub, so runs are reproducible
    and work offline.

    Args:
        setting: setting that has this value, for messages.
        name: a folder, or a name on the hub.
        needs: required files; each entry lists alternatives, one of which must exist.
        patterns: patterns of the files to download from the hub.
    """
    files = " and ".join(" or ".join(names) for names in needs)
    folder = expanded(name)
    if folder.is_dir():
        if not _complete(folder, needs):
            raise ConfigError(
                f"{setting} is {name!r}: the folder has no {files}. Save all files there with "
                "save_pretrained, or give a name on the hub."
            )
        return folder.resolve()
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ConfigError(
            f"{setting} is {name!r}, which is not a folder: give a folder with {files}, or a name "
            f"on the hub, e.g. {HUB_MODEL}."
        )
    hub = language_package("huggingface_hub", f"{setting} {name!r}")
    for offline in (True, False):
        try:
            with _quiet("huggingface_hub"):
                snapshot = hub.snapshot_download(
                    name, allow_patterns=list(patterns), local_files_only=offline
                )
        except (OSError, ValueError, RuntimeError) as error:  # ValueError: an invalid name
            if offline:
                continue
            raise ConfigError(
                f"{setting} is {name!r}, which is not a local folder and cannot be downloaded from "
                f"the hub: {_first_line(error)} Connect to the internet once, or give a folder "
                f"with {files}{', or words' * (setting == 'tokenizer')}."
            ) from error
        if _complete(Path(snapshot), needs):
            return Path(snapshot)
    raise ConfigError(f"{setting} is {name!r}, which has no {files} on the hub: choose another.")


def load_pretrained(setting: str, name: str, load: Any, folder: Path, **options: Any) -> Any:
    """Load the files in ``folder`` with ``load`` from transformers, without log messages.

    Code in the folder is not run, and pickled weights are not read.
    """
    logs = language_package("transformers", f"{setting} {name!r}").utils.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    try:
        return load(str(folder), local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:  # from any of the libraries that read the files
        raise ConfigError(
            f"{setting} is {name!r}, but the files in {folder} cannot be used: "
            f"{type(error).__name__}: {_first_line(error)} Save or download them again."
        ) from error
    finally:
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()


def _complete(folder: Path, needs: Sequence[Sequence[str]]) -> bool:
    return all(any((folder / name).is_file() for name in names) for names in needs)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(" .") + "."


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Suppress a library's warnings, which its exceptions repeat."""
    log = logging.getLogger(logger)
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
