"""The cells of a load as problems of least energy, and the services that follow from answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.loads import Decision, Load, Service
from channels.network import ChannelDraw
from solvers.access.deadlines import DeadlineMissedError, Late
from solvers.bands.least_band import LN2, least_band, upload_seconds
from solvers.bands.least_time import least_time
from solvers.energy.energy_problem import EnergyProblem, read_problem
from solvers.energy.least_energy import EnergyPlan, least_energy
from solvers.load_rows import by_client, cell_rows, heard_bits


@dataclass(frozen=True, eq=False)
class EnergyCells:
    """Cells that choose bands, powers and clocks, one problem per item and cell.

    Items are places in the leading axes of load and channel draw.

    Args:
        load: what each client does.
        draw: channels of the clients, each in a band of its own.
        problem: the cells' clients at their bits, cycles and limits, item by item.
        lost: seconds before and after its local phase that each cell cannot use, [problems]; all
            clients of a cell count as if they started when its last client does.
        after: those after it, [problems].
        deadline: when each cell must have ended with what follows, [problems]; inf for no deadline.
        stuck: [..., clients], clients with bits and a channel of zero.
        takes_part: [..., clients], clients that train and send.
    """

    load: Load
    draw: ChannelDraw
    problem: EnergyProblem
    lost: FloatArray
    after: FloatArray
    deadline: FloatArray
    stuck: BoolArray
    takes_part: BoolArray

    @classmethod
    def of(cls, load: Load, draw: ChannelDraw, deadline_seconds: float = np.inf) -> EnergyCells:
        """The cells of ``load``, until its deadline or ``deadline_seconds``, the earlier."""
        load.check_fits(draw)
        draw = draw.in_bands()
        network = draw.network
        network.check_clocks()
        bits, stuck = heard_bits(load, draw)
        clients = {
            "bits": cell_rows(network, bits),
            "cycles": cell_rows(network, load.cycles),
            "gain_per_noise": cell_rows(network, draw.gain_per_noise),
            "max_power_watts": cell_rows(network, network.transmit_power_w),
            "max_cpu_hz": cell_rows(network, network.cpu_hz),
            "kappa": cell_rows(network, network.switched_capacitance),
        }
        shape = np.broadcast_shapes(load.shape[:-1], draw.h.shape[:-2])
        clients["bits"] = np.broadcast_to(clients["bits"], (*shape, *clients["bits"].shape[-2:]))

        def latest(values: FloatArray) -> FloatArray:
            by_client = np.broadcast_to(values, (*values.shape[:-1], network.clients))
            by_cell = network.over_cells(np.maximum, by_client)
            return np.broadcast_to(by_cell, (*shape, network.cells)).reshape(-1)

        after = latest(load.after_seconds)
        earliest = np.minimum(load.deadline_seconds, deadline_seconds)
        with np.errstate(divide="ignore"):
            deadline = 1 / latest(1 / earliest)
        return cls(
            load,
            draw,
            read_problem(clients, network.bandwidth_hz, None, (1.0, 1.0)),
            latest(load.begin_seconds(network)) + after,
            after,
            deadline,
            stuck,
            np.ones((*shape, network.clients), dtype=np.bool_),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of items and cells."""
        cells = self.draw.network.cells
        return len(self.lost) // cells if cells else 0, cells

    def late(self) -> IntArray:
        """The problems that cannot meet their deadlines."""
        limited = np.flatnonzero(np.isfinite(self.deadline))
        end = (self.deadline - self.lost)[limited]
        fits = replace(self.problem.rows(limited), deadline=end).feasible()[0]
        return limited[~fits]

    def in_time(self, late: Late) -> EnergyCells:
        """The cells with all clients that can meet the deadlines.

        With ``late="lost"``, the largest number of the clients of a cell take part. K clients can
        end in time if and only if the K smallest of the bands that each needs at full power and
        speed sum to at most that of the cell.

        Raises:
            DeadlineMissedError: ``late`` is "error", and a cell cannot meet its deadline, or what
                comes before and after its local phase takes longer.
        """
        at = self.late()
        if not at.size:
            return self
        never = at[(self.deadline - self.lost)[at] <= 0]
        if late == "error" or never.size:
            raise self._missed(at if late == "error" else never)
        cells, end = self.problem.cells(at), (self.deadline - self.lost)[at]
        window = end[:, None] - cells.ready
        able = (cells.bits == 0) & (window >= 0) | (cells.bits * LN2 < window * cells.snr_hz)
        sends = able & (cells.bits > 0)
        bands = least_band(
            np.where(sends, cells.bits, 0.0), np.where(sends, window, 1.0), cells.snr_hz
        )
        needed = np.where(able, bands[0], np.inf)
        order = needed.argsort(-1, kind="stable")
        sums = np.take_along_axis(needed, order, -1).cumsum(-1)
        fits = np.zeros(needed.shape, dtype=np.bool_)
        np.put_along_axis(fits, order, sums <= cells.bandwidth_hz[:, None], -1)
        stays = np.ones(self.problem.bits.shape, dtype=np.bool_)
        stays[at] = fits
        return replace(self._with(stays), takes_part=self._by_client(stays) > 0)

    def without(self, problems: IntArray) -> EnergyCells:
        """The cells, of which some do nothing."""
        stays = np.ones(len(self.lost), dtype=np.bool_)
        stays[problems] = False
        return self._with(np.repeat(stays[:, None], self.problem.bits.shape[1], 1))

    def _with(self, stays: BoolArray) -> EnergyCells:
        """The cells, of whose clients [problems, clients] only some have anything to do."""
        bits, cycles = (
            np.where(stays, array, 0.0) for array in (self.problem.bits, self.problem.cycles)
        )
        return replace(self, problem=replace(self.problem, bits=bits, cycles=cycles))

    def works(self) -> BoolArray:
        """Which problems have anything to do."""
        return np.asarray(((self.problem.bits > 0) | (self.problem.cycles > 0)).any(-1))

    def ending(self, end: FloatArray) -> Service:
        """The least energy with which the local phases end at ``end`` [problems]."""
        until, ones = np.where(self.works(), end, 1.0), np.ones(len(end))
        problem = replace(self.problem, deadline=until, weights=(0.0 * ones, ones))
        return self.service(least_energy(problem, problem.feasible()[1]), end)

    def service(self, plan: EnergyPlan, end: FloatArray) -> Service:
        """What the clients do in ``plan``, with which local phases end at ``end`` [problems]."""
        if not np.isfinite(plan.energy).all():
            raise ValueError(
                "the least energy of a cell is not finite: lower transmit powers, clocks or bits."
            )
        load, network, joins = self.load, self.draw.network, self.takes_part
        bands, upload, powers, clocks = (self._by_client(x) for x in plan[:4])
        cycles = np.where(clocks > 0, load.cycles, 0.0)
        training = np.divide(cycles, clocks, out=np.zeros(clocks.shape), where=cycles > 0)
        seconds = np.where(self.stuck, np.inf, load.begin_seconds(network) + training + upload)
        # Clients that do not take part wait for the others.
        seconds = np.where(joins, seconds, self._of_cells(end + self.lost - self.after))
        training_joules = network.switched_capacitance * clocks**2 * cycles
        joules = load.pilot_joules(network) + (training_joules + powers * upload)
        decision = Decision(bands_hz=bands, powers_w=powers, cpu_hz=clocks)
        arrived = joins & ~self.stuck
        return Service(seconds, joules, arrived, decision, self._transmissions, upload)

    def undecided(self) -> Service:
        """The local phases end at the deadlines; powers, clocks and energy are not decided."""
        ends = np.where(self.stuck, np.inf, self._of_cells(self.deadline - self.after))
        joules, arrived = np.zeros(ends.shape), self.takes_part & ~self.stuck
        return Service(ends, joules, arrived, transmissions=self._transmissions)

    @property
    def _transmissions(self) -> FloatArray | None:
        """0 for clients that do not take part; None if all do."""
        return None if self.takes_part.all() else self.takes_part.astype(np.float64)

    def _of_cells(self, values: FloatArray) -> FloatArray:
        """Values [..., clients] of each client's cell, from those of the problems."""
        network, lead = self.draw.network, self.takes_part.shape[:-1]
        return np.asarray(values.reshape(*lead, network.cells)[..., network.cell_of])

    def _by_client(self, values: FloatArray | BoolArray) -> FloatArray:
        """Values [..., clients] of those of the problems' clients."""
        lead = self.takes_part.shape[:-1]
        network = self.draw.network
        rows = np.asarray(values, dtype=np.float64)
        return by_client(network, rows.reshape(*lead, network.cells, values.shape[-1]))

    def _missed(self, late: IntArray) -> DeadlineMissedError:
        """The worst of the cells that miss their deadlines."""
        needed = self.lost[late] + least_time(self.problem.cells(late))[1]
        place = int((needed - self.deadline[late]).argmax())
        worst = int(late[place])
        network, cells = self.draw.network, self.problem.cells(np.array([worst]))
        *item, cell = (int(i) for i in np.unravel_index(worst, self.problem.shape))
        whole = np.broadcast_to(cells.bandwidth_hz[:, None], cells.bits.shape)
        alone = (cells.ready + upload_seconds(cells.bits, whole, cells.snr_hz))[0]
        slowest = int(alone[: network.cell_sizes[cell]].argmax())
        return DeadlineMissedError(
            float(self.deadline[worst]),
            float(needed[place]),
            cell,
            int(network.numbers[network.cell_starts[cell] + slowest]),
            float(self.lost[worst] + alone[slowest]),
            tuple(item),
        )
