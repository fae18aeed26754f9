"""Designs a run: algorithm, local steps, edge rounds, clients, masks, uplink and allocation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from channels import Network
from channels.notes import Notes
from channels.validation import whole_number
from solvers import Solution
from wirelessfl.air.uplinks import Uplink
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import own_modes
from wirelessfl.base.wording import shown, suggesting
from wirelessfl.config import Config
from wirelessfl.data import Data
from wirelessfl.designs.choices import Family, divides, unreachable
from wirelessfl.designs.fit import spread_targets
from wirelessfl.designs.goals import MEAN, Curve, Goal
from wirelessfl.designs.observed import Pilot
from wirelessfl.designs.pilot_plan import (
    COUNT,
    FEWEST,
    STEPS,
    PilotPlan,
    PilotRequest,
    planned,
)
from wirelessfl.designs.pilot_runs import Pilots, check_model, pilot
from wirelessfl.designs.prediction import predicted
from wirelessfl.designs.reports import Reports
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.designs.search import Search
from wirelessfl.designs.solution import Design, chosen, designed_config, least_of, solution_of
from wirelessfl.designs.spaces import (
    Space,
    base_config,
    names_of,
    with_algorithm,
)
from wirelessfl.designs.ways import (
    AIR,
    UPLINKS_IN_ROUNDS,
    Way,
    air_table,
    air_way,
    check_noise,
    pilot_config,
    ways,
)
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given
from wirelessfl.runs.build.planners import planner_without_data
from wirelessfl.runs.build.plausible import implausible
from wirelessfl.runs.result import RunResult

DRAWS = 4
"""Rounds of the sample, of which the means are taken."""
REQUESTED = ("local_steps", "edge_rounds", "clients", "masks", "snr_db", "count", "steps")
"""Arguments of ``pilot`` that say which pilots there are."""
UNSOLVED = (
    ("rates", "mcs", "solvers take Shannon's formula"),
    ("power_loading", "water-filling", "uplinks give all subcarriers equal power"),
)
"""Settings of uplinks with values that no design has, and why."""
MARGIN = 1.5
"""Rounds of a pilot over those of the cheapest uplink, whose rounds with other masks cost less."""


def affordable_rounds(
    planner: Planner, goal: Goal, ways: Sequence[Way], clients: Sequence[int | None]
) -> Callable[[int, int], float] | None:
    """The rounds of H local steps and E edge rounds that a budget allows, and some more.

    They are those of the cheapest uplink with equal masks, times ``MARGIN``, rounded up to a power
    of 2, so that budgets that differ little have the same pilots.

    Args:
        planner: plans the rounds of an algorithm.
        goal: the goal.
        ways: the uplinks to choose from.
        clients: numbers of clients per round to choose from; None for all.

    Returns:
        A function of H and E; None if pilots end at a target, or if there is no budget.
    """
    if goal.target is not None:
        return None
    joules = goal.max_seconds is None  # otherwise clocks below the largest may save them
    limit = goal.max_client_joules if joules else goal.max_seconds
    if limit is None:
        return None
    planner = replace(planner, chosen=planner.assigner.design_sizes.fixed(None))
    stream = planner.stream.child("affordable")
    samples = []
    for count in clients:
        participation = replace(planner.participation, per_round=count)
        sampled = replace(
            planner.sampling(stream, DRAWS),
            run_stream=planner.run_stream,
            participation=participation,
        )
        samples.append(SampledRounds(sampled, DRAWS))
    uplinks = [way.uplink for way in ways if not way.deadline]
    return partial(_rounds_within, limit, samples, uplinks, joules)


def _rounds_within(
    limit: float,
    samples: Sequence[SampledRounds],
    uplinks: Sequence[Uplink],
    joules: bool,
    local_steps: int,
    edge_rounds: int,
) -> float:
    costs = [
        sample.of(uplink, (local_steps,), (edge_rounds,), joules=joules)
        for sample in samples
        for uplink in uplinks
    ]
    least = float(np.nanmin([cost.means[1 if joules else 0].item() for cost in costs]))
    most = MARGIN * limit / least if least > 0 else math.inf
    return 2.0 ** math.ceil(math.log2(most)) if 0 < most < math.inf else most


def targets_within(runs: Sequence[RunResult]) -> list[float]:
    """Targets of the curve of such pilots, in increasing order.

    The highest one is reached by half of the pilots, and by three at least. More of them would
    reach only what the worst H and E reach within the budget, and all better designs would tie.

    Args:
        runs: the pilots.
    """
    pilots = [Pilot.of(run) for run in runs]
    low = float(np.median([pilot.best[pilot.rounds > 0][0] for pilot in pilots]))
    reached = sorted(float(pilot.best[-1]) for pilot in pilots)
    high = min(reached[-max(math.ceil(len(pilots) / 2), FEWEST)], 0.999)
    low = min(low, high - 0.5 * (high - min(pilot.best[0] for pilot in pilots)))
    return [float(target) for target in spread_targets(low, high)]


@suggesting()
@own_modes
def design(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    network: Network | str | None = None,
    model: nn.Module | None = None,
    data: Data | None = None,
    target: float | None = None,
    objective: Any = None,
    max_seconds: float | None = None,
    max_client_joules: float | None = None,
    statistic: str | float = MEAN,
    among: Sequence[str] | str | None = None,
    uplinks: Sequence[str] = UPLINKS_IN_ROUNDS,
    local_steps: Sequence[int] | int | None = None,
    edge_rounds: Sequence[int] | int | None = None,
    clients: Sequence[int] | int | None = None,
    curve: Curve | Mapping[str, Curve] | None = None,
    pilots: int = COUNT,
    pilot_steps: int = STEPS,
    air_snr_db: Sequence[float] | None = None,
    jobs: int = 1,
    root: str | Path = "runs/pilots",
    draws: int = 16,
    on_note: Callable[[str], None] | None = None,
) -> Solution[Design]:
    """Choose how to train over a network: for a target at the least cost, or within a budget.

    A design is an algorithm, the numbers of local steps H, of edge rounds E and of clients per
    round, fixed mask sizes (HIST), and an uplink with its allocation of bands, powers and clocks;
    the clients' widths are those of the settings. The global rounds R to the target are those of
    learning curves that are fitted to pilots, on validation data; test data are not read. They are
    rounded up to whole rounds with an evaluation, at which a run ends. Seconds and joules of a
    global round are means over a sample of rounds, which the planner of the run plans: downloads
    and backhaul count. The objective is R x (w_T seconds + w_E joules).

    Over OFDMA with bands, powers and clocks of the least cost, ``solvers.optimize_rounds`` chooses
    H, E and mask sizes, and proves a bound on the objective, for the fitted R. Time division, equal
    bands, sums over the air, and masks that are optimized in each round are compared one by one. A
    design with a bound is preferred to one without that is better by less than 1 %; the solution's
    message says so.

    >>> import wirelessfl
    >>> def scores(steps):
    ...     return [1 - 1 / (1 + number * steps**0.5) for number in range(1, 100)]
    >>> points = [(2, 1), (2, 4), (8, 1), (8, 4)]
    >>> runs = [wirelessfl.Pilot(h, e, 4, range(1, 100), scores(h * e)) for h, e in points]
    >>> curve = wirelessfl.fit_rounds(runs, [0.8, 0.9])
    >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, clients=4, hidden=(8,))
    >>> solution = wirelessfl.design(
    ...     config, target=0.9, curve=curve, local_steps=[2, 4, 8], edge_rounds=[1, 2]
    ... )
    >>> solution.value.choice.edge_rounds, solution.gap < 1e-4
    (1, True)
    >>> solution.value.config.evaluation.target  # wirelessfl.run(solution.value.config) trains it
    0.9

    Args:
        config: settings of the run: data, model, network and algorithm. What is designed is
            replaced; H and E of the settings are those of the design with which others are
            compared. Without ``validation_fraction``, a tenth of the training data is held out.
        network, model, data: replace the configured ones, see ``wirelessfl.Given``.
        target: validation accuracy to reach; None for that of the settings, or for the most
            accuracy within the limits.
        objective: what reaching the target should cost the least of: "seconds" (the default),
            "joules", or weights (w_T, w_E) of seconds and of joules, which are means over all
            clients. Joules alone need ``max_seconds``.
        max_seconds: limit on the simulated seconds of the run.
        max_client_joules: limit on the joules of the run, mean over all clients. As the only limit,
            it lets clients train at full power and speed only: slower ones would always save more.
        statistic: what of the run's seconds and joules over the channels of its rounds is minimised
            and limited: "mean" (the default), "median", or a quantile in (0, 1), with which that
            part of the runs takes no longer. Bounds are proven for the mean only.
        among: algorithms to choose from, each with settings of its own if need be, such as
            "fedavg+uplink_compression=quantisation+uplink_compression_bits=4"; None for that of
            the settings.
        uplinks: uplinks to choose from, "tdma" and "ofdma", and "aircomp" if it is named: with the
            precoders and beamformers of the settings, and rounds by the error variance 1/SNR of the
            weakest clients.
        local_steps, edge_rounds: H and E to choose from; None for 2 to 40 and 1 to 10.
        clients: numbers of clients per round to choose from; None for that of the settings.
        curve: the learning curve, or one for each algorithm by name; None to fit it to pilots. One
            that was fitted with ``bootstrap=0`` gives predictions without intervals.
        pilots, pilot_steps, jobs, root: ``count``, ``steps``, ``jobs`` and ``root`` of
            ``wirelessfl.pilot``, for each algorithm. Without a target, pilots have at most some
            more rounds than the budget allows.
        air_snr_db: SNR of the pilots over the air, if "aircomp" is among the uplinks; None for that
            of the network.
        draws: number of rounds in the sample. Four times as many others are the evaluation.
        on_note: called with notes, with a line on each pilot that has been trained, and with one on
            the pilots of each algorithm; None to warn of notes with the class ``wirelessfl.Note``.

    Returns:
        A ``Design``. The objective is that of the sample; ``Design.predicted`` has the costs by the
        evaluation. With a gap of at most 1e-4 the design is OPTIMAL for the fitted R among those
        over OFDMA; otherwise FEASIBLE: the best of those that have been compared.

    Raises:
        ConfigError: an argument is wrong, there is nothing to design, or no design meets the goal.
        DataError: data are missing or unsuitable.
    """
    started = time.perf_counter()
    count = _draws(draws)
    names = [uplinks] if isinstance(uplinks, str) else list(uplinks)
    objects: Given = {"model": model, "data": data, "network": network}
    settings, replaced = configured_call(design, config, objects)
    objects["network"] = replaced.network
    for name, value, reason in UNSOLVED:
        if getattr(settings.uplink, name, None) == value:
            raise ConfigError(
                f'{name}="{value}" conflicts with a design, whose {reason}: leave {name} out.'
            )
    if target is None:
        target = settings.evaluation.target
    if max_seconds is None:
        max_seconds = settings.training.max_seconds
    interval = settings.evaluation.eval_every or 1
    goal = Goal.of(target, objective, max_seconds, max_client_joules, interval, statistic)
    base = base_config(settings)
    configs = {name: with_algorithm(base, name) for name in names_of(among, base)}
    planners = {name: planner_without_data(configs[name], replaced) for name in configs}
    first = next(iter(planners.values())).network
    notes = Notes(on_note)
    notes(*implausible(settings, first))
    space = Space.of(base, local_steps, edge_rounds, clients, first.clients)
    air = air_way(settings, first) if AIR in names else None
    considered = ways(names, goal, first, air)
    search = Search(goal, space, considered, count)
    snr_db = _air_snr_db(air_snr_db, air, curve)
    trained: dict[str, Pilots] = {}
    if curve is None:
        options: dict[str, Any] = {"snr_db": snr_db, "count": pilots, "steps": pilot_steps}
        options |= {**objects, "root": root, "jobs": jobs, "on_note": notes}
        if local_steps is not None:
            options |= _several("local_steps", space.local_steps)
        if edge_rounds is not None:
            options |= _several("edge_rounds", space.edge_rounds)
        for settled in configs.values() if len(configs) > 1 else ():  # before the first pilot
            check_model(planned(settled, network=replaced.network), replaced)
        for name, settled in configs.items():
            if air is not None:
                table = air_table(settings)
                settled = pilot_config(settled, table, replaced=replaced.network is not None)
            trained[name] = _pilots(search, planners[name], settled, options, on_note)
            if on_note is not None:
                wall = trained[name].wall_seconds
                on_note(f"{name}: {trained[name]}, {wall:.1f} s of wall-clock time")
        curves = {name: _curve(runs) for name, runs in trained.items()}
    else:
        curves = _given_curves(curve, list(configs))
    if air is not None:
        check_noise(curves)
    families = [Family(name, configs[name], planners[name], curves[name]) for name in configs]
    return _solved(search, families, list(trained.values()), notes, started)


def _pilots(
    search: Search,
    planner: Planner,
    config: Config,
    options: Mapping[str, Any],
    tell: Callable[[str], None] | None,
) -> Pilots:
    """The pilots of an algorithm, with a line for each by ``tell``.

    ``options`` are arguments of ``pilot`` for all algorithms.
    """
    cells, space = planner.network.cells, search.space
    if len(space.clients) > 1:
        total = planner.network.clients
        options = {**options, "clients": [total if n is None else n for n in space.clients]}
    if cells == 1:
        options = {**options, "edge_rounds": None}
    config = config.changed(target=search.goal.target)  # at which pilots end
    options = {**options, "masks": divides(planner.assigner, cells)}
    if tell is not None:
        requested = {name: options[name] for name in REQUESTED if name in options}
        plan = planned(config, PilotRequest(**requested), options["network"])
        options |= _lines(config.named("algorithm"), plan, tell)
    return pilot(
        config,
        most_rounds=affordable_rounds(planner, search.goal, search.ways, space.clients),
        **options,
    )


def _lines(name: str, plan: PilotPlan, tell: Callable[[str], None]) -> dict[str, Any]:
    """Callbacks of ``pilot`` that tell what is trained, and each pilot that has been."""
    waiting: list[int] = []
    ended: list[int] = []

    def on_found(finished: Sequence[int], others: Sequence[int]) -> None:
        waiting.extend(others)
        if others:
            tell(f"{name}: {len(others)} pilots to train, {len(finished)} read")

    def on_end(place: int) -> None:
        if place in waiting:
            ended.append(place)
            tell(f"{name}: pilot {len(ended)} of {len(waiting)}, {plan.points[place].label}")

    return {"on_found": on_found, "on_end": on_end}


def _curve(pilots: Pilots) -> Curve:
    return pilots.curve(targets_within(pilots.results) if pilots.target is None else None)


def _solved(
    search: Search,
    families: Sequence[Family],
    pilots: Sequence[Pilots],
    notes: Notes,
    started: float,
) -> Solution[Design]:
    """The best design of a search."""
    alternatives = search.alternatives(families)
    proof = search.certified(families)
    alternatives += proof.designs
    best, added = chosen(search, alternatives, proof)
    if best is None:
        raise ConfigError(unreachable(search.goal, families, alternatives))
    alternatives += added
    prediction = predicted(search.goal, best, search.draws)
    notes(*map(str, prediction.dominant))
    solution = Design(
        config=designed_config(best, search.goal, prediction),
        goal=search.goal,
        choice=best,
        predicted=prediction,
        trainings=sum(map(len, pilots)),
        wall_seconds=sum(runs.wall_seconds for runs in pilots),
        reports=Reports(search, alternatives, best),
    )
    wall = time.perf_counter() - started
    sized = any(family.sizes for family in families)
    return solution_of(solution, proof, least_of(alternatives), wall, sized=sized)


def _several(name: str, numbers: Sequence[int]) -> dict[str, Sequence[int]]:
    """The argument of ``pilot``; none for one number, from which pilots cannot choose."""
    return {} if len(numbers) < 2 else {name: numbers}


def _air_snr_db(snr_db: Any, air: Way | None, curve: object) -> Sequence[float]:
    """SNR of the pilots over the air; none without this uplink, or if the curve is known."""
    if snr_db is not None and (air is None or curve is not None):
        why = f"has no effect without uplink {AIR!r}" if air is None else "conflicts with curve"
        raise ConfigError(f"air_snr_db={shown(snr_db)} {why}: leave it out.")
    if air is None or curve is not None:
        return ()
    # Rounded, so that pilots of the same network are found again.
    return [round(-10 * math.log10(air.noise), 3)] if snr_db is None else snr_db


def _draws(draws: Any) -> int:
    try:
        count = whole_number("draws", draws)
    except TypeError as error:
        raise ConfigError(f"draws is {shown(draws)}: give an integer >= 2.") from error
    if count < 2:
        raise ConfigError(f"draws is {count}: give an integer >= 2.")
    return count


def _given_curves(curve: Curve | Mapping[str, Curve], names: Sequence[str]) -> dict[str, Curve]:
    """The learning curve of each algorithm."""
    if not isinstance(curve, Mapping):
        if len(names) > 1:
            raise ConfigError(
                f"curve is one for {len(names)} algorithms: give one for each, by name."
            )
        return dict.fromkeys(names, curve)
    missing = [name for name in names if name not in curve]
    if missing:
        raise ConfigError(f"curve has no entry {missing[0]!r}: give one for each algorithm.")
    return {name: curve[name] for name in names}
