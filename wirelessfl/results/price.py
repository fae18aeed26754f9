"""Seconds and joules of runs, without training: of settings, and of trained runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, overload

from channels import Network
from channels.notes import Notes
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import own_modes
from wirelessfl.base.wording import check_keywords, shown
from wirelessfl.config import Config
from wirelessfl.results.elsewhere import TrainedRun, entries_of
from wirelessfl.results.load import load
from wirelessfl.results.priced_runs import PricedNetworks, PricedRun
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given, GivenObjects, GivenTraining
from wirelessfl.runs.pricing.network_prices import NetworkPrices, network_prices
from wirelessfl.runs.pricing.price import priced
from wirelessfl.runs.pricing.prices import Prices
from wirelessfl.runs.pricing.radio import Radio, check_cells, over
from wirelessfl.runs.result import RunResult

Configured = Config | Mapping[str, Any] | str | Path
"""Settings of a run, or the path of their file."""
OneNetwork = Network | str | Mapping[str, Any]
"""A network, an import path, or settings of the radio."""


@overload
def price(  # type: ignore[overload-overlap]  # a string is a sequence of strings
    run: RunResult,
    rounds: int | None = None,
    *,
    network: OneNetwork | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
    **given: Unpack[GivenTraining],
) -> PricedRun: ...
@overload
def price(
    run: RunResult,
    rounds: int | None = None,
    *,
    network: Sequence[OneNetwork],
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
    **given: Unpack[GivenTraining],
) -> PricedNetworks: ...
@overload
def price(
    run: Config | Mapping[str, Any],
    rounds: int | None = None,
    *,
    network: OneNetwork | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
    **given: Unpack[GivenTraining],
) -> Prices: ...
@overload
def price(
    run: RunResult | Configured,
    rounds: int | None = None,
    *,
    network: OneNetwork | Sequence[OneNetwork] | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
    **given: Unpack[GivenTraining],
) -> Any: ...
@own_modes
def price(
    run: RunResult | Configured,
    rounds: int | None = None,
    *,
    network: OneNetwork | Sequence[OneNetwork] | None = None,
    uplink: str | Mapping[str, Any] | None = None,
    joules: bool = True,
    trust: bool = False,
    **given: Unpack[GivenTraining],
) -> Prices | PricedRun | NetworkPrices:
    """Price the rounds of settings, or of a trained run over another network or uplink.

    Nothing is trained. The schedule, channels, participants, submodels and loads are simulated on
    the virtual clock, so all costs equal those in the rows of a run, to the bit. Data are read only
    if they determine the model's size and are the user's own, or texts whose vocabulary depends on
    a tokenizer's files.

    Of settings, the costs of each round are returned. A run that stops at a target accuracy has a
    prefix of these rounds. Over the air, precoders apply the weights of the mean: with
    ``weighting="samples"`` the numbers of samples are not known, equal ones are assumed, and joules
    differ from the run's.

    Of a trained run, its rows are returned with the seconds and joules of the other radio, as if it
    had been trained there. Cells, clients, seed and training stay. Over an error-free uplink the
    model does not depend on the radio if clients and submodels do not; whatever makes it depend is
    refused by name.

    With a sequence of networks, all are priced together: the rounds are planned once, and fading is
    shared by networks that differ in gains, powers, bands or CPUs.

    >>> import wirelessfl
    >>> prices = wirelessfl.price(wirelessfl.Config.from_flags("fedavg", clients=4, rounds=3))
    >>> len(prices.rows), prices.node_seconds.shape
    (4, (3, 1))

    Args:
        run: a configuration, nested tables of settings, or the path of a TOML file; or a trained
            run or its folder.
        rounds: number of rounds, of all sessions, or of merges of asynchronous cells or of each
            task, which then ends; None for all rounds of the run, up to ``max_seconds`` if it is
            set. Of a trained run, at most those of its rows.
        network: network to use instead of the run's: a network, the import path of one, or settings
            of the network, layout, path loss and fading by the names of their flags, such as
            ``{"bandwidth_hz": 2e6}``; or a sequence of these.
        uplink: uplink to use instead of the run's: its name, or its settings, such as
            ``{"name": "ofdma", "allocation": "optimal"}``.
        joules: whether to compute the energy. Over the air it takes most of the time, since it
            needs the beamformers of every channel draw.
        trust: whether a folder or file may name code to import.
        given: the objects of the run, but for its network, see ``wirelessfl.Given``: ``model``,
            ``data``, ``split``, ... Of a trained run, ``model`` and ``data``.

    Returns:
        ``Prices`` of settings, a ``PricedRun`` of a trained run; of several networks
        ``NetworkPrices``, or ``PricedNetworks`` of a trained run.

    Raises:
        ConfigError: a wrong setting, settings that conflict, a wrong number of rounds; the costs
            depend on training (selection and assignment by losses, targets of several tasks,
            requests divided by the spread of updates, and redesigns), or the training of the run
            depends on the radio; or the run needs an object that is not given.
        DataError: the data set must be read, but is missing or damaged.
        TrainingError: no merge follows, since all updates of requests miss ``cutoff_seconds``.
    """
    check_keywords(price, given, Given.__annotations__)
    if not isinstance(run, RunResult | Config | Mapping | str | PathLike):
        raise ConfigError(
            f"run is {shown(run)}: give a run or its folder, or settings: a wirelessfl.Config, "
            "tables, or the path of a TOML file."
        )
    if isinstance(run, str | PathLike) and Path(run).is_dir():
        run = load(run, trust=trust)
    several = _several(network)
    single: Any = network if several is None else None
    radio = Radio(uplink, single)
    if isinstance(run, RunResult):
        trained = TrainedRun(run, rounds, GivenObjects.of(price, given), joules=joules)
        return trained.over(radio) if several is None else trained.over_all(radio, several)
    if several is not None or uplink is not None or isinstance(single, Mapping):
        config, objects = configured_call(price, run, given, trust)
        config = over(config, radio)
        objects = replace(objects, network=radio.given)
    else:
        config, objects = configured_call(price, run, {**given, "network": single}, trust)
    notes = Notes()
    notes(*objects.untrained_notes)
    if several is None:
        simulated = priced(config, rounds, objects, joules=joules)
        notes(*simulated.notes)
        return simulated.prices
    entries = entries_of(config, several)
    for number, entry in enumerate(entries):
        check_cells(entries[0].network, entry.network, f"network[{number}]: unlike network[0]")
    return network_prices(entries, rounds, objects, joules=joules)


def _several(network: Any) -> list[Any] | None:
    """The networks, if these are several."""
    if isinstance(network, Network | str | Mapping) or not isinstance(network, Iterable):
        return None
    networks = list(network)
    if not networks:
        raise ConfigError("network is an empty sequence: give at least one network.")
    return networks
