"""The settings of a run: typed, checked once, the same from TOML, from flags and from Python.

Field names are flag names (``data_dir`` is ``--data-dir``) and TOML keys; sections are TOML tables.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import tomli_w
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from wirelessfl.algorithms import Algorithm, find_algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.simulation.participants import check_participation
from wirelessfl.uplinks import Uplink, find_uplink
from wirelessfl.uplinks.base import Coherence


class Section(BaseModel):
    """A table of settings: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_yes_or_no(cls, given: Any) -> Any:
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if key in cls.model_fields:
                _refuse_bool(key, value, cls.model_fields[key].annotation)
        return given


class DataSection(Section):
    """What is learnt from."""

    dataset: str = Field("digits", description="data set, see `wirelessfl list`")
    data_dir: Path | None = Field(
        None,
        description="folder with one folder a data set (default: $WIRELESSFL_DATA, or a cache)",
    )
    split: Literal["noniid", "cell-iid", "dirichlet", "iid", "natural"] = Field(
        "noniid", description="how samples are dealt to clients"
    )
    alpha: float = Field(0.5, gt=0, description="parameter of the Dirichlet split")
    shards: int = Field(2, ge=1, description="label shards a client, in noniid and cell-iid")
    min_samples: int = Field(1, ge=1, description="least samples of a client, in dirichlet")
    samples_per_client: int | None = Field(
        None, ge=1, description="samples of every client, in iid and dirichlet (default: all dealt)"
    )
    reuse: bool = Field(
        False, description="with --samples-per-client, use samples again where they run out"
    )
    tokenizer: str | None = Field(
        None,
        description="tokenizer of texts, a name on the hub or a folder (default: --pretrained's)",
    )
    max_length: int | None = Field(
        None, ge=1, description="tokens that a text is cut or padded to (default: 128)"
    )


class ModelSection(Section):
    """What is learnt."""

    model: str = Field("fcnn", description="model, see `wirelessfl list`, or module:callable")
    dropout: float = Field(0.0, ge=0, lt=1, description="probability after hidden layers")
    hidden: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        None,
        description="widths of the hidden layers, e.g. 300,100 (fcnn; default: the model's own)",
    )
    norm: Literal["group", "batch"] | None = Field(
        None,
        description="normalisation of resnet18: group (its default), or batch, by the statistics "
        "of each batch, also in evaluation",
    )
    layers: str | None = Field(
        None, description="fully connected layers in order, e.g. fc1,fc2 (default: the model's own)"
    )
    pretrained: str | None = Field(
        None, description="base of gpt2-lora, a name on the hub or a folder (default: gpt2)"
    )
    lora_rank: int | None = Field(
        None, ge=1, description="rank of the LoRA adapters (gpt2-lora; default: 64)"
    )
    lora_alpha: float | None = Field(
        None, gt=0, description="LoRA adapters are scaled by this over the rank (default: the rank)"
    )


class NetworkSection(Section):
    """Cells, clients and their radio; the defaults are those of Section VI-C of the HIST paper."""

    cells: int | None = Field(None, ge=1, description="cells (default: 4, or 1 for a star)")
    clients: int = Field(60, ge=1, description="clients in all cells together")
    bandwidth_hz: float = Field(9e6, gt=0, description="bandwidth of a cell, in Hz")
    antennas: int = Field(10, ge=1, le=1024, description="antennas of an edge server")
    fading: Literal["rayleigh", "rician"] = Field("rayleigh", description="block fading")
    rician_k_db: float = Field(6.0, description="Rician K factor, in dB")
    antenna_correlation: float = Field(
        0.0, ge=0, lt=1, description="correlation of neighbouring antennas"
    )
    snr_db: float | None = Field(
        None, description="transmit SNR of all clients, in dB (default: 30 and 40 by half)"
    )
    cpu_hz: tuple[float, float] | None = Field(
        None, description="range LOW,HIGH of CPU speeds, in Hz (default: 1-2 and 2-4 GHz by half)"
    )
    coherence: Coherence | None = Field(
        None, description="how long a channel draw lasts (default: round, the uplink's own)"
    )
    cycles_per_step: float = Field(1e6, gt=0, description="CPU cycles of a full-model step")
    step_seconds: float | None = Field(
        None,
        gt=0,
        description="seconds of a full-model step of every client, instead of cycles over CPU "
        "speed (default: cycles)",
    )
    transmit_power_w: float = Field(0.1, gt=0, description="transmit power of a client, in W")
    switched_capacitance: float = Field(
        1e-28, ge=0, description="kappa of kappa f^2 joules a cycle"
    )
    path_gain_db: tuple[float, float] | None = Field(
        None,
        description="range LOW,HIGH of mean channel powers, in dB, e.g. --path-gain-db=-20,20 "
        "(default: 0)",
    )
    downlink_mbps: float | None = Field(
        None, gt=0, description="rate to each client, in Mbit/s (default: takes no time)"
    )
    backhaul_mbps: float | None = Field(
        None, gt=0, description="rate edge server to cloud, in Mbit/s (default: takes no time)"
    )


class TrainingSection(Section):
    """How long and in what steps."""

    local_steps: int = Field(20, ge=1, description="H, mini-batch steps an edge round")
    edge_rounds: int | None = Field(
        None, ge=1, description="E, edge rounds a global round (default: 5, or 1 for a star)"
    )
    rounds: int = Field(30, ge=1, description="T, global rounds")
    batch_size: int = Field(50, ge=1, description="samples a mini-batch")
    clients_per_round: int | None = Field(
        None, ge=1, description="S, clients that train in a round, in all cells (default: all)"
    )
    tracking_clients: int | None = Field(
        None,
        ge=1,
        description="of these, who updates and sends its tracking term (default: all of them)",
    )
    weighting: Literal["uniform", "samples"] = Field(
        "uniform", description="weights of clients and cells in means"
    )


class EvaluationSection(Section):
    """When the model is tested."""

    eval_every: int = Field(1, ge=1, description="global rounds between rows")
    target: float | None = Field(
        None, gt=0, le=1, description="accuracy whose cost the closing table gives"
    )


def _number_or_auto(given: Any) -> Any:
    """A number of processes, checked here so that one message names both kinds of value."""
    if given is None or given == "auto":
        return given
    try:
        number = int(given)
    except (TypeError, ValueError):
        number = 0
    if isinstance(given, float) and number != given:
        number = 0
    if not 1 <= number <= 1024:
        raise ValueError(f"{given!r} is no number of processes: give 1 to 1024, or auto")
    return number


class RunSection(Section):
    """Where it is computed, and where the results go."""

    seed: int = Field(1, ge=0, description="seed of all randomness")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    executor: Literal["auto", "stacked", "vmap", "loop"] = Field(
        "auto",
        description="chains of layers together (stacked), any model together (vmap), or one client "
        "after the other for debugging (loop)",
    )
    chunk: int | None = Field(
        None, ge=1, description="clients that train at once (default: by device)"
    )
    replay: Literal["on", "off"] | None = Field(
        None,
        description="record local steps once and replay them without the model's own Python code "
        "(default: on GPUs, and where a run of executor vmap is long)",
    )
    workers: Annotated[int | Literal["auto"] | None, BeforeValidator(_number_or_auto)] = Field(
        None,
        description="single-thread CPU processes that train, or auto (default: auto on the command "
        "line, where long runs get one a core; 1 from Python)",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads (default: torch's choice)"
    )
    checkpoint_seconds: float = Field(
        5.0, ge=0, description="least wall seconds between checkpoints; 0 saves every round"
    )
    client_states: Literal["auto", "memory", "disk"] = Field(
        "auto",
        description="where what clients keep between rounds is held: host memory, or the run's "
        "folder (auto: by size)",
    )
    out: Path | None = Field(None, description="folder of the run (default: a new one in runs/)")


SECTIONS: dict[str, type[Section]] = {
    "data": DataSection,
    "model": ModelSection,
    "network": NetworkSection,
    "training": TrainingSection,
    "evaluation": EvaluationSection,
    "run": RunSection,
}


class Config(Section):
    """All settings of a run.

    ``algorithm`` and ``uplink`` are tables with a ``name`` and the settings of what it names.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Config:
        """The configuration in nested ``tables``, with every default filled in and checked.

        Raises:
            ConfigError: an unknown key, a wrong value, or settings that do not go together.
        """
        try:
            config = cls.model_validate(_named(tables))
        except ValidationError as error:
            raise ConfigError(_explain(error)) from None
        return _resolve(config)

    @classmethod
    def from_flags(cls, algorithm: str, **flags: Any) -> Config:
        """The configuration of ``wirelessfl run ALGORITHM --flag value ...``.

        Args:
            algorithm: its name.
            flags: settings by their flat names, e.g. ``data_dir``, ``cells``, ``lr``.
        """
        return cls.of(tables_from_flags({"algorithm": {"name": algorithm}}, flags))

    @classmethod
    def from_toml(cls, path: Path) -> Config:
        """The configuration in a TOML file."""
        return cls.of(read_toml(path))

    def to_toml(self) -> str:
        """The configuration as TOML; reading it back gives the same object."""
        plain: dict[str, Any] = _plain(self.model_dump())
        return tomli_w.dumps(plain)

    def build_algorithm(self) -> Algorithm:
        """The algorithm with its settings."""
        built: Algorithm = _build(_class_of(self.algorithm), self.algorithm)
        return built

    def build_uplink(self) -> Uplink:
        """The uplink with its settings."""
        built: Uplink = _build(find_uplink(self.uplink["name"]), self.uplink)
        return built


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"configuration {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {path} is not TOML: {error}.") from error


def tables_from_flags(tables: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """``tables`` with the flat settings ``flags`` put into their sections.

    Raises:
        ConfigError: a flag that no section, algorithm or uplink has.
    """
    if "uplink" in flags:
        tables = {**tables, "uplink": flags["uplink"]}
    merged = _named(tables)
    if "local" in flags:
        merged["algorithm"]["local"] = flags["local"]
    algorithm, uplink = merged["algorithm"]["name"], merged["uplink"]["name"]
    homes = flag_homes(_class_of(merged["algorithm"]), find_uplink(uplink))
    for flag, value in flags.items():
        if flag == "uplink":
            continue
        if flag not in homes:
            near = difflib.get_close_matches(flag, homes, n=1)
            hint = f" Do you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"algorithm {algorithm!r} over uplink {uplink!r} has no setting {flag!r}.{hint}"
            )
        section, key = homes[flag]
        table = merged.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{section} is {table!r}: a table of settings is needed.")
        table[key] = value
    return merged


def _named(tables: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``tables`` in which algorithm and uplink are tables with a name.

    Raises:
        ConfigError: one of them is no name and no table with a name.
    """
    copy = {key: dict(v) if isinstance(v, Mapping) else v for key, v in tables.items()}
    if copy.get("uplink") is None:
        copy["uplink"] = "tdma"
    if copy.get("algorithm") is None:
        raise ConfigError('no algorithm: name one, e.g. [algorithm] name = "hist".')
    for key in ("algorithm", "uplink"):
        if isinstance(copy[key], str):
            copy[key] = {"name": copy[key]}
        if not isinstance(copy[key], dict) or not isinstance(copy[key].get("name"), str):
            raise ConfigError(f'{key} is {copy[key]!r}: give a name, e.g. [{key}] name = "...".')
    return copy


def _plain(value: Any) -> Any:
    """``value`` as TOML can hold it: no None, paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def flag_homes(algorithm: type[Algorithm], uplink: type[Uplink]) -> dict[str, tuple[str, str]]:
    """Where each flat name belongs: flag -> (section, key).

    A setting of an algorithm or uplink whose name another section has gets its owner's as prefix.
    """
    homes = {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }
    for section, owner in (("uplink", uplink), ("algorithm", algorithm)):
        for entry in fields(owner):
            flag = entry.name
            if flag in homes:
                flag = f"{owner.name.replace('-', '_')}_{flag}"
            homes[flag] = (section, entry.name)
    return homes


def _class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The algorithm that a table names, with what it runs in its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {local!r}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def _build(owner: type[Any], table: Mapping[str, Any]) -> Any:
    """An algorithm or uplink from its table, every value checked."""
    settings = {key: value for key, value in table.items() if key != "name"}
    known = [entry.name for entry in fields(owner)]
    for key in settings:
        if key not in known:
            raise ConfigError(
                f"{table['name']!r} has no setting {key!r}. It has {', '.join(known) or 'none'}."
            )
        _refuse_bool(key, settings[key], get_type_hints(owner)[key])
    try:
        built = TypeAdapter(owner).validate_python(settings)
    except ValidationError as error:
        raise ConfigError(_explain(error)) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: a finite number is needed.")
    return built


def _refuse_bool(key: str, value: Any, annotation: Any) -> None:
    """True is no number, though Python counts it as 1."""
    if isinstance(value, bool) and "bool" not in str(annotation):
        raise ConfigError(f"{key} is {value}: it is not a yes-or-no setting.")


def _resolve(config: Config) -> Config:
    """Fill in what depends on the algorithm, and refuse what makes no sense together."""
    algorithm, uplink = config.build_algorithm(), config.build_uplink()
    name, star = config.algorithm["name"], algorithm.topology == "star"
    alone = [payload.name for payload in algorithm.payloads if payload.each]
    if alone and uplink.gives == "sum":
        raise ConfigError(
            f'algorithm "{name}" needs each client\'s {" and ".join(alone)}, and uplink '
            f'"{config.uplink["name"]}" gives only their sum. Choose uplink "tdma" or "ofdma".'
        )
    cells = config.network.cells or (1 if star else min(4, config.network.clients))
    edge_rounds = config.training.edge_rounds or (1 if star else 5)
    if star and (cells > 1 or edge_rounds > 1):
        raise ConfigError(
            f'algorithm "{name}" is a star: one server, one edge round (cells is {cells}, '
            f'edge_rounds {edge_rounds}). Choose cells 1 and edge_rounds 1, or "hfedavg".'
        )
    if cells > config.network.clients:
        raise ConfigError(
            f"cells is {cells} and clients {config.network.clients}: every cell needs a client."
        )
    training = config.training
    check_participation(
        algorithm,
        config.network.clients,
        cells,
        training.clients_per_round,
        training.tracking_clients,
    )
    if config.network.step_seconds is not None and config.network.cpu_hz is not None:
        raise ConfigError(
            f"step_seconds is {config.network.step_seconds} and cpu_hz {config.network.cpu_hz}: a "
            "step takes the one, or cycles_per_step over the other. Leave one out."
        )
    if config.network.cpu_hz and not 0 < config.network.cpu_hz[0] <= config.network.cpu_hz[1]:
        raise ConfigError(f"cpu_hz is {config.network.cpu_hz}: give 0 < LOW <= HIGH, in Hz.")
    gains = config.network.path_gain_db
    if gains and gains[0] > gains[1]:
        raise ConfigError(f"path_gain_db is {gains}: give LOW <= HIGH, in dB.")
    return config.model_copy(
        update={
            "algorithm": {"name": name, **vars(algorithm)},
            "uplink": {"name": config.uplink["name"], **vars(uplink)},
            "network": config.network.model_copy(
                update={"cells": cells, "coherence": config.network.coherence or uplink.coherence}
            ),
            "training": config.training.model_copy(update={"edge_rounds": edge_rounds}),
        }
    )


def _explain(error: ValidationError) -> str:
    """Pydantic's findings in one line: which setting, which value, what is needed."""
    lines = []
    for entry in error.errors():
        where = ".".join(str(part) for part in entry["loc"])
        if entry["type"] == "extra_forbidden":
            lines.append(f"{where} is no setting")
        elif entry["type"] == "value_error":
            found = str(entry["ctx"]["error"]).removesuffix(".")
            lines.append(f"{where}: {found}" if where else found)
        elif entry["type"] == "missing":
            lines.append(f"{where} is missing from {entry['input']!r}")
        else:
            lines.append(f"{where} is {entry['input']!r}: {entry['msg']}")
    return "; ".join(lines) + "."
