"""Finds settings without effect, which belong to unused choices or are replaced by other settings.

If given, even with its default value, such a setting is refused. It is not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.config.given import LINK_KINDS, replaced_by_network
from wirelessfl.config.kinds import KINDS, with_cells
from wirelessfl.config.settings import Settings
from wirelessfl.data import WITHOUT_IMAGES, dataset_names, text_options
from wirelessfl.selection import RandomSelection
from wirelessfl.wording import shown

Place = tuple[str, str]
"""Table and key of a setting."""
Found = Iterator[tuple[Place, str]]
"""Settings without effect, with reasons such as "conflicts with X=A, which ...: choose Y=B"."""

RADIO = (
    "bandwidth_hz",
    "antennas",
    "antenna_correlation",
    "snr_db",
    "path_gain_db",
    "coherence",
    "transmit_power_dbm",
    "transmit_power_w",
    "noise_figure_db",
    "noise_dbm_per_hz",
    "channel",
)
"""Network settings of the radio channel."""
COMPUTING = ("cpu_hz", "cycles_per_step", "cycles_per_flop", "slowdown", "switched_capacitance")
"""Network settings of the clients' CPUs."""
NO_ROUNDS = 'which has no synchronous rounds of one model: choose schedule "rounds"'
"""The reason to refuse settings of rounds under another schedule."""


def unused(settings: Settings) -> dict[Place, str]:
    """The reason for each setting without effect, given or not, by table and key."""
    found: dict[Place, str] = {}
    for rule in RULES:
        for place, reason in rule(settings):
            found.setdefault(place, reason)
    return found


def refusal(settings: Settings, place: Place, reason: str) -> str:
    """The error message for a setting without effect."""
    section, key = place
    table = getattr(settings, section)
    value = table[key] if isinstance(table, Mapping) else getattr(table, key)
    name = section if key == "name" and section in KINDS else key
    leave = ", or leave" if ": " in reason else ": leave"
    return f"{name}={shown(value)} {reason}{leave} {name} out."


def _kinds(settings: Settings) -> Found:
    """Settings of choices that the run does not have."""
    frame = settings.frame
    for kind in KINDS:
        table, reason = getattr(settings, kind), frame.why_not(kind)
        if reason is not None:
            yield from (((kind, key), reason) for key in table or ())


def _fields(settings: Settings) -> Found:
    """Settings without effect because of other settings of the same choice."""
    for kind, choice in vars(settings.choices).items():
        if choice is not None:
            yield from (((kind, key), reason) for key, reason in choice.unused().items())


def _schedule(settings: Settings) -> Found:
    """Settings without effect under the schedule."""
    algorithm, uplink = settings.choices.algorithm, settings.choices.uplink
    schedule, title = settings.choices.schedule, f'schedule "{settings.schedule["name"]}"'
    if schedule.work != "requests":
        for key in algorithm.of_staleness:
            yield (
                ("algorithm", key),
                f"conflicts with {title}, under which no update is stale: choose schedule "
                '"buffered"',
            )
    if settings.regime == "tasks":
        yield ("run", "client_log"), f"conflicts with {title}, {NO_ROUNDS}"
        for key in uplink.of_rounds:
            yield (
                ("uplink", key),
                f"conflicts with {title}, {NO_ROUNDS}",
            )
    if settings.regime == "cells":
        for key in schedule.of_clients:
            yield (
                ("schedule", key),
                f'conflicts with algorithm "{settings.algorithm["name"]}", whose cells '
                f"replace requests to clients under {title}: choose an algorithm without cells",
            )
    if schedule.work != "rounds":
        reason = f'conflicts with {title}, which has no sessions: choose schedule "rounds"'
        yield ("sessions", "sessions"), reason
        yield (
            ("training", "tracking_clients"),
            f"conflicts with {title}, under which every client that trains sends tracking terms: "
            'choose schedule "rounds"',
        )
    if schedule.work == "requests":
        clients = "in which all clients of a cell train: choose"
        if settings.regime == "tasks":
            clients = "which does not sample clients: set requests, or choose"
        yield (
            ("training", "clients_per_round"),
            f'conflicts with {title}, {clients} schedule "rounds"',
        )
    if settings.regime == "tasks" and len(settings.task) < 2:
        for key in schedule.of_several:
            yield ("schedule", key), "needs several tasks: add tables of tasks"


def _star(settings: Settings) -> Found:
    """Settings of cells, if the algorithm has a single server."""
    if settings.choices.algorithm.topology != "star":
        return
    reason = (
        f'conflicts with algorithm "{settings.algorithm["name"]}", which is a star with one '
        'server: choose "hfedavg" or "hist"'
    )
    for key in ("cells", "slowdown", "backhaul_mbps", "coherence"):
        yield ("network", key), reason
    yield ("training", "edge_rounds"), reason


def _links(settings: Settings) -> Found:
    """Network settings without effect because of the uplink, latency model or cost of a step."""
    frame, network = settings.frame, settings.network
    if not frame.radio:
        name = settings.delays["name"] if settings.delays else ""
        reason = f'conflicts with delays "{name}", which draws the total time of a request: choose '
        for key in (*RADIO, *COMPUTING, "downlink_mbps"):
            yield ("network", key), f'{reason}delays "wireless"'
    elif not frame.uplink.radio:
        for key in RADIO:
            reason = (
                f'conflicts with uplink "{settings.uplink["name"]}", which has no radio channel'
            )
            yield ("network", key), f'{reason}: choose uplink "tdma"'
    if frame.radio and network.step_seconds is not None:
        for key in ("cpu_hz", "cycles_per_step", "cycles_per_flop"):
            yield (
                ("network", key),
                f"conflicts with step_seconds={network.step_seconds:g}, which replaces it: choose "
                "one of them",
            )
    if network.cycles_per_flop is not None:
        yield (
            ("network", "cycles_per_step"),
            f"conflicts with cycles_per_flop={network.cycles_per_flop:g}, which replaces it: "
            "choose one of them",
        )
    if not frame.radio and network.step_seconds is not None:
        yield (
            ("delays", "delay_scale"),
            f"conflicts with step_seconds={network.step_seconds:g}, which replaces it: choose one "
            "of them",
        )


def _gains(settings: Settings) -> Found:
    """Settings of an SNR if it follows from mean channel gains, and of the noise if it does not."""
    frame, network = settings.frame, settings.network
    if not (frame.radio and frame.uplink.radio):
        return
    if network.transmit_power_dbm is not None:
        yield (
            ("network", "transmit_power_w"),
            f"conflicts with transmit_power_dbm={network.transmit_power_dbm:g}, which replaces it: "
            "choose one of them",
        )
    if frame.channel is not None:
        for key in ("antennas", "antenna_correlation", "snr_db", "path_gain_db"):
            yield ("network", key), frame.recorded
    elif frame.layout.positions:
        if settings.regime == "tasks" and frame.schedule.work == "requests":
            yield (
                ("layout", "reuse_factor"),
                f'conflicts with schedule "{frame.schedule.title}", whose uploads have no common '
                'block: choose schedule "rounds"',
            )
        for key in ("snr_db", "path_gain_db"):
            yield (
                ("network", key),
                f'conflicts with layout "{frame.layout.title}", whose distances give the SNR: '
                'choose layout "section-vi-c"',
            )
    else:
        for key in ("noise_figure_db", "noise_dbm_per_hz"):
            yield (
                ("network", key),
                f'conflicts with layout "{frame.layout.title}", which fixes the SNR: choose layout '
                '"disc", "hexagonal" or "file"',
            )


def _requests(settings: Settings) -> Found:
    """Settings of requests to clients and of rounds of tasks, if the run has none."""
    if settings.choices.algorithm.topology != "star":
        for key in ("drop_out", "availability", "busy_clients"):
            yield ("network", key), with_cells(settings.algorithm["name"])
    title, work = f'schedule "{settings.schedule["name"]}"', settings.choices.schedule.work
    tasks = settings.regime == "tasks"
    if not tasks:
        yield (
            ("network", "drop_out"),
            f"conflicts with {title}, which has no requests to clients: choose schedule "
            '"buffered" or "simultaneous"',
        )
    if not (tasks and work == "task rounds"):
        yield (
            ("network", "availability"),
            f'conflicts with {title}, which has no rounds of tasks: choose schedule "simultaneous"',
        )
    if not (tasks and work == "requests"):
        yield (
            ("network", "busy_clients"),
            f'conflicts with {title}, which has no requests to clients: choose schedule "buffered"',
        )
    if settings.choices.schedule.work == "rounds":
        yield (
            ("evaluation", "eval_seconds"),
            f"conflicts with {title}, which evaluates after whole rounds: choose eval_every or "
            'schedule "buffered"',
        )


def _sessions(settings: Settings) -> Found:
    """Settings of sessions, if the run has none."""
    if settings.sessions.sessions is None:
        yield ("sessions", "tested_labels"), "needs sessions: set sessions"
        yield ("evaluation", "eval_first"), "needs sessions: set sessions"
    elif (settings.evaluation.eval_every or 1) == 1:
        yield (
            ("evaluation", "eval_first"),
            "conflicts with eval_every=1, which evaluates every round: raise eval_every",
        )


def _selection(settings: Settings) -> Found:
    """A selection where all clients take part or channels are missing, and its energy budget."""
    select, per_round = settings.choices.select, settings.training.clients_per_round
    if select is None:
        title = f'schedule "{settings.schedule["name"]}"'
        yield (
            ("training", "client_joules"),
            f"conflicts with {title}, {NO_ROUNDS}",
        )
        return
    name = (settings.select or {})["name"]
    reason = None
    if per_round is None and name != RandomSelection.name:
        reason = "needs clients_per_round: set it"
    elif select.radio and not settings.frame.uplink.radio:
        uplink = f'uplink "{settings.frame.uplink.title}"'
        reason = f'conflicts with {uplink}, which has no radio channel: choose uplink "tdma"'
    if reason is not None:
        yield from ((("select", key), reason) for key in settings.select or {})


def _local_steps(settings: Settings) -> Found:
    """A number of local steps that a number of passes replaces."""
    passes = settings.training.local_epochs
    if passes is None:
        return
    yield (
        ("training", "local_steps"),
        f"conflicts with local_epochs={passes:g}, which gives each client its own number of steps: "
        "choose one of them",
    )


def _cutoff(settings: Settings) -> Found:
    """A cut-off where no update can miss it."""
    place, uplink = ("training", "cutoff_seconds"), settings.choices.uplink
    if settings.regime == "tasks":
        title = f'schedule "{settings.schedule["name"]}"'
        yield place, f"conflicts with {title}, {NO_ROUNDS}"
    elif uplink.gives == "sum":
        yield (
            place,
            f'conflicts with uplink "{settings.frame.uplink.title}", over which the clients of a '
            'cell send at the same time: choose uplink "tdma", "ofdma" or "fixed"',
        )
    elif uplink.deadline_seconds is not None:
        failures = settings.choices.failures
        if failures is None or failures.never or not failures.repeats:
            yield (
                place,
                f"conflicts with round_deadline={uplink.deadline_seconds:g}, which all updates "
                "meet: choose one of them",
            )


def _stop_at_target(settings: Settings) -> Found:
    """``stop_at_target`` without a target, or where accuracies do not end the run."""
    place = ("evaluation", "stop_at_target")
    if settings.regime == "tasks":
        title = f'schedule "{settings.schedule["name"]}"'
        yield place, f"conflicts with {title}, under which a task always ends at its target"
    elif settings.sessions.sessions is not None:
        yield place, "conflicts with sessions, which test other labels in each session"
    elif settings.evaluation.target is None:
        yield place, "needs target: set target"


def _patience(settings: Settings) -> Found:
    """``patience`` where accuracies do not end the run, and ``min_delta`` without it."""
    if settings.sessions.sessions is not None:
        reason = "conflicts with sessions, which test other labels in each session"
        yield ("evaluation", "patience"), reason
        yield ("evaluation", "min_delta"), reason
    elif settings.evaluation.patience is None:
        yield ("evaluation", "min_delta"), "needs patience: set patience"


def _algorithm(settings: Settings) -> Found:
    """Settings that the algorithm does not use."""
    algorithm, name = settings.choices.algorithm, settings.algorithm["name"]
    title = f'conflicts with algorithm "{name}", which'
    if not algorithm.uses_mean:
        yield ("training", "weighting"), f"{title} does not merge by a mean"
    if all(payload.senders != "tracking" for payload in algorithm.payloads):
        yield (
            ("training", "tracking_clients"),
            f"{title} has no tracking terms: choose fadamgc, fa-nt, scaffold or scaffold-m",
        )
    whole = type(algorithm).client_submodels is Algorithm.client_submodels
    if whole:
        yield (
            ("run", "padding"),
            f"{title} gives clients submodels of equal widths: choose an algorithm such as "
            '"ra-fed"',
        )
    if whole and type(algorithm).submodels is Algorithm.submodels:
        yield ("model", "layers"), f'{title} does not split layers: choose "hist" or "ra-fed"'
    if not (*algorithm.client_state, *algorithm.remembers):
        yield ("run", "client_states"), f"{title} keeps no client state"


def _data(settings: Settings) -> Found:
    """Text settings of data sets without text, and image settings of data sets without images."""
    name = settings.data.dataset
    if settings.given.data is not None:
        for key in ("tokenizer", "max_length"):
            yield ("data", key), "conflicts with data=..., which is tokenised already"
        if settings.data.pixels != "signed":
            yield (
                ("data", "pixels"),
                "conflicts with data=..., whose values are used as they are: scale the arrays, "
                "e.g. inputs / 255",
            )
        return
    taken = text_options(name)
    for key in ("tokenizer", "max_length"):
        if key not in taken:
            reason = f'conflicts with dataset "{name}", which does not use it: choose '
            yield ("data", key), reason + _datasets_with(key)
    if name in WITHOUT_IMAGES:
        yield ("data", "pixels"), f'conflicts with dataset "{name}", which has no images'


@cache
def _datasets_with(key: str) -> str:
    """The data sets that have a text setting, joined by "or"."""
    return " or ".join(name for name in dataset_names() if key in text_options(name))


def _given(settings: Settings) -> Found:
    """Settings that given Python objects replace."""
    given = settings.given
    if given.model is not None:
        yield ("model", "name"), "conflicts with model=..., which is given to wirelessfl.run"
    if given.loss is not None:
        for key in settings.loss:
            yield ("loss", key), "conflicts with loss=..., which is given to wirelessfl.run"
    if given.data is not None:
        yield ("data", "dataset"), "conflicts with data=..., which is given to wirelessfl.run"
    if given.split is not None:
        for key in settings.split:
            yield ("split", key), "conflicts with split=..., which is given to wirelessfl.run"
        yield (
            ("data", "validation_fraction"),
            "conflicts with split=..., which says who has which samples: choose one of them",
        )
    named = settings.network.network
    if given.network is not None or named is not None:
        reason = "conflicts with network=..., which is given to wirelessfl.run"
        if given.network is None:
            reason = f"conflicts with network={named}, which replaces it: choose one of them"
        for key in replaced_by_network(settings.frame.radio):
            if key != "network" or given.network is not None:
                yield ("network", key), reason
        for kind in LINK_KINDS:
            for key in getattr(settings, kind) or ():
                yield (kind, key), reason


RULES = (
    _given,
    _schedule,  # before _kinds: naming "sessions" explains more than naming its choices
    _kinds,
    _fields,
    _star,
    _links,
    _gains,
    _requests,
    _sessions,
    _selection,
    _local_steps,
    _cutoff,
    _stop_at_target,
    _patience,
    _algorithm,
    _data,
)


def kept_tables(settings: Settings, dropped: Collection[Place]) -> dict[str, Any]:
    """The tables of all settings that are not in ``dropped``."""
    tables: dict[str, Any] = {}
    for section, values in settings.model_dump().items():
        if isinstance(values, Mapping):
            kept = {key: v for key, v in values.items() if (section, key) not in dropped}
            if section not in KINDS or kept:
                tables[section] = kept
        elif values is not None:
            tables[section] = values
    return tables


__all__ = ["Place", "kept_tables", "refusal", "unused"]
