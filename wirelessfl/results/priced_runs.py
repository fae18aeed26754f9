"""Trained runs over other radios: accuracies of the training, costs of the radio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.terminal import rendered
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.runs.pricing.network_prices import NetworkPrices
from wirelessfl.runs.pricing.radio import of_radio
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.targets import Monitor, ToTarget, cost_to


@dataclass(frozen=True, eq=False, repr=False)
class PricedRun(RunResult):
    """A trained run as it would have been over another radio; nothing of it is stored.

    Its rows have the accuracies of the run, and seconds and joules of the radio. It is a
    ``RunResult`` with the folder and the parameters of the run, and ``wirelessfl.results.Runs``
    accepts it.

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-priced-run")
    >>> run = wirelessfl.run(settings)
    >>> other = wirelessfl.price(run, network={"bandwidth_hz": 1e6}, uplink="ofdma")
    >>> other.rows[-1]["accuracy"] == run.rows[-1]["accuracy"]
    True
    >>> bool(other.rows[-1]["sim_seconds"] > run.rows[-1]["sim_seconds"])
    True

    Args:
        source: the trained run.
        network: the other network, if it is given as an object.
    """

    source: RunResult = field(kw_only=True)
    network: Network | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        """One line: algorithm, data set, accuracy, seconds over the radio, and the trained run."""
        facts = [*self._facts().values(), f"{self.radio}, priced from {self.directory}"]
        return f"{self.label}: {', '.join(facts)}"

    @property
    def changes(self) -> dict[str, tuple[Any, Any]]:
        """Settings of the radio that differ, by table and key, before and now; None for none."""
        before, now = (_radio(config) for config in (self.source.config, self.config))
        if self.network is not None:
            now["network.network"] = repr(self.network).strip("<>").replace("Network: ", "", 1)
        return {
            name: (before.get(name), now.get(name))
            for name in dict.fromkeys([*now, *before])
            if before.get(name) != now.get(name)
        }

    @property
    def radio(self) -> str:
        """The radio in words: the uplink, and what differs from the trained run."""
        words = [self.config.named("uplink")]
        for name, (_, now) in self.changes.items():
            section, _, key = name.partition(".")
            if name == "network.network":
                words.append("another network")
            elif (section, key) != ("uplink", "name") and now is not None:
                words.append(str(now) if key == "name" else f"{key} {_value(now)}")
        return ", ".join(words)

    def costs(self, target: float | None = None) -> list[dict[str, Any]]:
        """Costs of the run and of its price, one dict each.

        Args:
            target: accuracy (or the monitored metric) whose costs are wanted too; None for that of
                the run, if it has one.

        Returns:
            ``over``, ``rounds``, ``seconds``, ``joules``, ``uplink_mib``, and with a target
            ``target``, ``rounds_to_target``, ``seconds_to_target`` and ``joules_to_target``, None
            if it is not reached.

        Raises:
            ConfigError: the target is not a number.
        """
        target = self.settings.get("target") if target is None else target
        titles = ("as trained", self.radio)
        return [
            {"over": title, **_costs(run.rows, self.settings, target)}
            for title, run in zip(titles, (self.source, self), strict=True)
        ]

    def table(self, target: float | None = None) -> str:
        """The run beside its price, as text; arguments and errors as for ``costs``."""
        trained, now = self.costs(target)
        names = {"rounds": "rounds", "seconds": "simulated s"}
        names |= {"uplink_mib": "MiB/client", "joules": "J/client"}
        if "target" in now:
            value = f"{now['target']:g}"
            names |= {"rounds_to_target": f"rounds to {value}"}
            names |= {"seconds_to_target": f"s to {value}", "joules_to_target": f"J to {value}"}
        cells = [
            [title, _cell(trained[name]), _cell(now[name]), _change(trained[name], now[name])]
            for name, title in names.items()
            if name != "joules" or now[name] is not None
        ]
        return rendered(["", "as trained", "priced", "change"], cells)

    def differences(self) -> str:
        """In words, what of the radio differs from the trained run."""
        words = [
            f"{name.removesuffix('.name').rpartition('.')[2]} "
            + _value(now)
            + ("" if before is None else f" instead of {_value(before)}")
            for name, (before, now) in self.changes.items()
            if now is not None
        ]
        return ", ".join(words) or "nothing differs"


@dataclass(frozen=True, eq=False, repr=False)
class PricedNetworks(NetworkPrices):
    """A trained run over several networks: costs as arrays, and each network's run.

    >>> import channels, wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-radios")
    >>> run = wirelessfl.run(settings)
    >>> streams = [channels.Stream(number) for number in range(5)]
    >>> networks = channels.umi(cells=1, clients=4, stream=streams)
    >>> prices = wirelessfl.price(run, network=networks, uplink="ofdma")
    >>> prices.seconds.shape, prices.seconds_to(0.05).shape, prices[3].rows[-1]["round"]
    ((5, 3), (5,), 2)

    Args:
        source: the trained run.
        configs: settings over each network.
    """

    source: RunResult = field(kw_only=True)
    configs: Sequence[Config] = field(kw_only=True)

    def __getitem__(self, number: int) -> PricedRun:
        """The run over one network."""
        source = self.source
        return PricedRun(
            config=self.configs[number],
            rows=self.rows_of(number),
            params=vars(source)["_params"],
            directory=source.directory,
            exhausted=source.exhausted,
            finished=source.finished,
            source=source,
            network=self.networks[number] if self.configs[number].given.network else None,
        )

    def __iter__(self) -> Iterator[PricedRun]:
        return (self[number] for number in range(len(self)))

    def seconds_to(self, target: float) -> FloatArray:
        """Simulated seconds [networks] until the run reaches a target; inf if it does not.

        Args:
            target: accuracy, or the run's monitored metric; of the validation set if there is one.

        Raises:
            ConfigError: the target is not a number.
        """
        return self._until(self.seconds, target)

    def joules_to(self, target: float) -> FloatArray:
        """Joules per client [networks] until the run reaches a target; see ``seconds_to``."""
        return self._until(self.joules, target)

    def _until(self, values: FloatArray, target: float) -> FloatArray:
        place = _cost_to(self.common, self.source.settings, target).place
        return np.full(len(self), np.inf) if place is None else np.asarray(values[:, place])


def _cost_to(
    rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], target: float
) -> ToTarget:
    if isinstance(target, bool) or not isinstance(target, int | float | np.number):
        raise ConfigError(f"target is {shown(target)}: give a number, such as 0.8.")
    monitor = Monitor.of(settings.get("monitor"), rows[-1])
    return cost_to(rows, float(target), monitor=monitor)


def _costs(
    rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], target: float | None
) -> dict[str, Any]:
    """Costs of a run, of its last row and of the one that reaches the target."""
    names = {"round": "rounds", "sim_seconds": "seconds", "joules": "joules"}
    costs: dict[str, Any] = {name: rows[-1].get(key) for key, name in names.items()}
    costs["uplink_mib"] = rows[-1]["uplink_mib"]
    if target is None:
        return costs
    cost = _cost_to(rows, settings, target)
    costs["target"] = float(target)
    for key, name in names.items():
        costs[f"{name}_to_target"] = cost.row.get(key) if cost.reached else None
    return costs


def _radio(config: Config) -> dict[str, Any]:
    """The settings of the radio, by table and key; given networks by their size."""
    tables = config.used_tables()
    settings = {
        f"{section}.{key}": value
        for section, table in tables.items()
        if isinstance(table, Mapping) and section != "given"
        for key, value in table.items()
        if of_radio(section, key) and value is not None and section != "failures"
    }
    if config.network.network is not None:
        settings["network.network"] = config.network.network
    if config.given.network is not None:
        settings["network.network"] = "the given one"
    return settings


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ",".join(_value(entry) for entry in value)
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "not reached"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _change(before: Any, now: Any) -> str:
    if not isinstance(now, float) or not before or now == before:
        return ""
    return f"{100 * (now / before - 1):+.1f} %"
