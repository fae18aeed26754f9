"""Base classes of your own parts, and the records that their methods receive or return.

>>> from dataclasses import dataclass
>>> from wirelessfl.extend import Candidates, IntArray, Selection
>>> @dataclass(frozen=True)
... class Heard(Selection):
...     def select(self, candidates: Candidates) -> IntArray:
...         return candidates.smallest(candidates.ledger.heard)

A part is a class in a file of yours, named by its path, e.g. ``--select my_file.py:Heard``. The
fields of the dataclass are its flags. Behind each base class are the methods to define; those in
brackets are optional. ``help(wirelessfl.extend.Selection)`` describes them, docs/guides has an
example of each, and ``wirelessfl check my_file.py:Heard`` tests yours.

Algorithms: what is learnt
    Algorithm         send, merge, (begin, gradient, step, keep, ...): one server
    ServerMemory      send, merge, (remember, ...): the server stores vectors of each client
    Averaging         FedAvg without momentum: (begin, gradient, step, ...)
    FedAvg            the same, with momentum
    LocalAdam         clients with Adam
    Scaffold          a built-in one, to vary
    Tracking          before a rule: clients and server keep tracking terms, as in SCAFFOLD
    GlobalMomentum    send, of a rule beside it: the server's momentum in every local step
    AdaptiveServer    second_moment: server with an adaptive step size, as FedAdam
    HFedAvg           (combine): a rule of the cloud over cells
    TaskRule          merge: merges of requests, by staleness
    Cohort            clients that train together: what they received, what they keep
    State             tensors by name
    Payload           what a client sends: name, unit, who sends it
    Received          what arrived: means, weights, updates, senders
    Penalty           anchors, loss: an additional loss term of the clients
    Contrast          model contrast, as in MOON
    Outputs           of the models that a penalty compares
    staleness, idle_at_zero  of each update; marks a method without effect at a setting of 0

Assigners: who trains which neurons
    Assigner          (submodels, client_submodels, redealt, tested, ...)
    CellPartition     disjoint submodels of the cells
    Narrow            choose: submodels of clients, with widths
    Adaptive          choose: widths that may follow each round's channels
    Nested            (choose): the first neurons of each layer
    RoundContext      a round, for submodels of cells
    ClientContext     a round or requests, for submodels of clients
    DealingContext    merged cells, for ``redealt``
    Durations, CellDurations  seconds of clients and of cells, by submodel
    SubmodelSizes     sizes that a design knows or chooses
    Submodels, ClientSubmodels  the submodel of each node, or client
    Partition         hidden layers that are divided over the cells
    NeuronMap         all neurons that a submodel may omit
    ParamSpec         names, shapes and slices of the flat parameters

Schedules: when things happen
    Schedule          scheduler
    Buffered          (scheduler, server): merges of full buffers
    Scheduler         decide, snapshot, restore: the schedule of one run
    BufferedScheduler  that of ``Buffered``
    Scope             the run that a scheduler is for
    Event             what happens, one of:
    Started, Arrived, Returned, Ready, Transmitted, Lost, Measured, Reached
    Present, Joined, Tick, Exhausted, Deadline
    Decision          what a scheduler answers, a list of:
    Give, Merge, Open, Begin, Close, Ask, Transmit, Aggregate, Drop, Cancel, Measure, Wake, Report
    Save, Stop

Selection and assignment: who takes part
    Selection         select, (check)
    Candidates        the clients, their channels, loads and losses
    History           seconds, joules, losses and participation of each candidate so far
    Ledger            what each client has used and done so far
    AssignmentRule    begin
    Bandit            a built-in one, to vary
    Assignment        choose, (learn, state, restore): the assignment of one run
    RandomAssignment  (choose): one without state

Uplinks: how updates cross the air
    Uplink            access, (receive, silent, ...)
    Tdma              a built-in one, to vary
    Access            serve, (rates, soonest): seconds and joules
    Load              cycles, elements and bits of each client
    Service           seconds, joules, who arrived
    Rates             bits per second while some clients send
    Transmission      one upload of clients to their nodes, for ``receive``
    Reception         what takes the payloads of a round
    Failures          probability: uploads that fail
    Failing           probability: the same, with --on-failure
    Compression       compress, bits: of uploads and of the downlink
    Recharge          joules: what batteries gain between two times

Channels and time
    LayoutModel       build
    Placed            build: a layout with positions
    Layout            place: positions of cells and clients
    PathLossModel     build
    PathLoss          loss_db, los_probability, shadowing_std_db, range_m
    FadingModel       build
    MobilityModel     build
    Mobility          motion: positions of clients in each block
    Fading            draw: small-scale channels
    Network           gains, powers, bands, CPUs of all clients
    ChannelDraw       the channels of one round
    Stream            named random numbers
    DelayModel        build, (check): latency of requests
    ShiftedExponentialDelays  a built-in one, to vary
    DelayScene        the run that a latency model is for
    TaskCosts         what a request of a task costs
    Delays            seconds, (compute_joules, mean_seconds): the latencies of one run
    Wireless          latencies from CPUs and links

Sessions: clients join and leave
    PresenceModel     attendance, (groups, check)
    PresenceScene     the run that a presence model is for
    Attendance        start, open, new_changes, ...: who is present
    Change            a client joins or leaves
    Clock             simulated seconds
    LabelGroups       groups of clients with different labels
    WarmStart         initial, (remember, penalties, trial_model)
    Previous, Average  the previous session's model, or the mean of earlier ones
    Opening           the session that begins
    Initial           its initial model
    Past              past sessions

Data, models, losses and metrics: a function often suffices, see docs/guides/own-parts.md
    DatasetChoice     a named data set with its settings; yours is a function or an object
    Dataset           samples and labels for training and tests
    Facts             sizes of a data set that need no reading
    Tokenizer         tokens of texts
    Split             deal, (by_labels, by_groups)
    IID               a built-in one, to vary
    Samples           labels and groups of the training samples
    ModelChoice       a named model with its settings; yours is a function or a module
    Loss              values, (fits, accuracy, shapes, reduced)
    Metric            value, (why_not)
    Predicted         a model's outputs for the test samples
    Measures          the metrics of a model

The run
    StepSizes         shares: step size of each round
    Observer          (begin, row, end)
    Running           the run that an observer sees
    Redesign          decide: how the next rounds train and send
    SoFar             rows, costs and settings until now
    RoundSettings     what ``decide`` changes
    Shards, sharded   the processes of a run that torchrun has started

Settings: notes in the annotation of a field
    Choice            base class of all of the above that are chosen by name
    Needs             what a setting needs to have an effect
    Fits              what a run needs to have this value
    Suits             settings that conflict
    beside            needs a value of another setting of the class
    STALE, EQUAL_STEPS  need an asynchronous schedule, or equal step sizes
    IntArray, FloatArray  NumPy arrays, for annotations
"""

from channels import Access as Access
from channels import ChannelDraw as ChannelDraw
from channels import Fading as Fading
from channels import Layout as Layout
from channels import Load as Load
from channels import Mobility as Mobility
from channels import Network as Network
from channels import PathLoss as PathLoss
from channels import Rates as Rates
from channels import Service as Service
from channels import Stream as Stream
from channels.arrays import FloatArray as FloatArray
from channels.arrays import IntArray as IntArray
from wirelessfl.air.compression import Compression as Compression
from wirelessfl.air.delays import DelayModel as DelayModel
from wirelessfl.air.delays import DelayScene as DelayScene
from wirelessfl.air.delays import ShiftedExponentialDelays as ShiftedExponentialDelays
from wirelessfl.air.delays import TaskCosts as TaskCosts
from wirelessfl.air.durations import Delays as Delays
from wirelessfl.air.durations import Wireless as Wireless
from wirelessfl.air.failures import Failing as Failing
from wirelessfl.air.failures import Failures as Failures
from wirelessfl.air.radio import FadingModel as FadingModel
from wirelessfl.air.radio import LayoutModel as LayoutModel
from wirelessfl.air.radio import MobilityModel as MobilityModel
from wirelessfl.air.radio import PathLossModel as PathLossModel
from wirelessfl.air.radio import Placed as Placed
from wirelessfl.air.recharge import Recharge as Recharge
from wirelessfl.air.uplinks.tdma import Tdma as Tdma
from wirelessfl.air.uplinks.uplink import Reception as Reception
from wirelessfl.air.uplinks.uplink import Transmission as Transmission
from wirelessfl.air.uplinks.uplink import Uplink as Uplink
from wirelessfl.algorithms.algorithm import Algorithm as Algorithm
from wirelessfl.algorithms.algorithm import ServerMemory as ServerMemory
from wirelessfl.algorithms.assigners.adaptive import Adaptive as Adaptive
from wirelessfl.algorithms.assigners.assigner import Assigner as Assigner
from wirelessfl.algorithms.assigners.assigner import CellDurations as CellDurations
from wirelessfl.algorithms.assigners.assigner import ClientContext as ClientContext
from wirelessfl.algorithms.assigners.assigner import DealingContext as DealingContext
from wirelessfl.algorithms.assigners.assigner import Durations as Durations
from wirelessfl.algorithms.assigners.assigner import RoundContext as RoundContext
from wirelessfl.algorithms.assigners.assigner import SubmodelSizes as SubmodelSizes
from wirelessfl.algorithms.assigners.narrow import Narrow as Narrow
from wirelessfl.algorithms.assigners.ordered import Nested as Nested
from wirelessfl.algorithms.assigners.partition import CellPartition as CellPartition
from wirelessfl.algorithms.fadamgc import LocalAdam as LocalAdam
from wirelessfl.algorithms.fedadam import AdaptiveServer as AdaptiveServer
from wirelessfl.algorithms.fedavg import Averaging as Averaging
from wirelessfl.algorithms.fedavg import FedAvg as FedAvg
from wirelessfl.algorithms.hfedavg import HFedAvg as HFedAvg
from wirelessfl.algorithms.momentum import GlobalMomentum as GlobalMomentum
from wirelessfl.algorithms.scaffold import Scaffold as Scaffold
from wirelessfl.algorithms.step_sizes import EQUAL_STEPS as EQUAL_STEPS
from wirelessfl.algorithms.step_sizes import StepSizes as StepSizes
from wirelessfl.algorithms.sync_st import TaskRule as TaskRule
from wirelessfl.algorithms.sync_st import staleness as staleness
from wirelessfl.algorithms.tracking import Tracking as Tracking
from wirelessfl.algorithms.warm_starts.past import Average as Average
from wirelessfl.algorithms.warm_starts.past import Previous as Previous
from wirelessfl.algorithms.warm_starts.warm_start import Initial as Initial
from wirelessfl.algorithms.warm_starts.warm_start import Opening as Opening
from wirelessfl.algorithms.warm_starts.warm_start import Past as Past
from wirelessfl.algorithms.warm_starts.warm_start import WarmStart as WarmStart
from wirelessfl.base.needs import STALE as STALE
from wirelessfl.base.needs import Fits as Fits
from wirelessfl.base.needs import Needs as Needs
from wirelessfl.base.needs import Suits as Suits
from wirelessfl.base.needs import beside as beside
from wirelessfl.base.registry import Choice as Choice
from wirelessfl.data.choice import DatasetChoice as DatasetChoice
from wirelessfl.data.dataset import Dataset as Dataset
from wirelessfl.data.dataset import Facts as Facts
from wirelessfl.data.label_groups import LabelGroups as LabelGroups
from wirelessfl.data.splits.random_splits import IID as IID
from wirelessfl.data.splits.split import Samples as Samples
from wirelessfl.data.splits.split import Split as Split
from wirelessfl.data.tokens import Tokenizer as Tokenizer
from wirelessfl.engine.assignment.assignment_rule import Assignment as Assignment
from wirelessfl.engine.assignment.assignment_rule import AssignmentRule as AssignmentRule
from wirelessfl.engine.assignment.built_in import Bandit as Bandit
from wirelessfl.engine.assignment.built_in import RandomAssignment as RandomAssignment
from wirelessfl.engine.events import Aggregate as Aggregate
from wirelessfl.engine.events import Arrived as Arrived
from wirelessfl.engine.events import Ask as Ask
from wirelessfl.engine.events import Begin as Begin
from wirelessfl.engine.events import Cancel as Cancel
from wirelessfl.engine.events import Close as Close
from wirelessfl.engine.events import Deadline as Deadline
from wirelessfl.engine.events import Decision as Decision
from wirelessfl.engine.events import Drop as Drop
from wirelessfl.engine.events import Event as Event
from wirelessfl.engine.events import Exhausted as Exhausted
from wirelessfl.engine.events import Give as Give
from wirelessfl.engine.events import Joined as Joined
from wirelessfl.engine.events import Lost as Lost
from wirelessfl.engine.events import Measure as Measure
from wirelessfl.engine.events import Measured as Measured
from wirelessfl.engine.events import Merge as Merge
from wirelessfl.engine.events import Open as Open
from wirelessfl.engine.events import Present as Present
from wirelessfl.engine.events import Reached as Reached
from wirelessfl.engine.events import Ready as Ready
from wirelessfl.engine.events import Report as Report
from wirelessfl.engine.events import Returned as Returned
from wirelessfl.engine.events import Save as Save
from wirelessfl.engine.events import Scheduler as Scheduler
from wirelessfl.engine.events import Started as Started
from wirelessfl.engine.events import Stop as Stop
from wirelessfl.engine.events import Tick as Tick
from wirelessfl.engine.events import Transmit as Transmit
from wirelessfl.engine.events import Transmitted as Transmitted
from wirelessfl.engine.events import Wake as Wake
from wirelessfl.engine.loop import Clock as Clock
from wirelessfl.engine.rounds.redesign import Redesign as Redesign
from wirelessfl.engine.rounds.redesign import RoundSettings as RoundSettings
from wirelessfl.engine.rounds.redesign import SoFar as SoFar
from wirelessfl.engine.schedules.buffered import Buffered as Buffered
from wirelessfl.engine.schedules.buffered_scheduler import BufferedScheduler as BufferedScheduler
from wirelessfl.engine.schedules.schedule import Schedule as Schedule
from wirelessfl.engine.schedules.schedule import Scope as Scope
from wirelessfl.engine.selection.selection import Candidates as Candidates
from wirelessfl.engine.selection.selection import Selection as Selection
from wirelessfl.engine.server.ledger import History as History
from wirelessfl.engine.server.ledger import Ledger as Ledger
from wirelessfl.engine.sessions.attendance import Attendance as Attendance
from wirelessfl.engine.sessions.presence import PresenceModel as PresenceModel
from wirelessfl.engine.sessions.presence import PresenceScene as PresenceScene
from wirelessfl.engine.sessions.processes import Change as Change
from wirelessfl.models.choice import ModelChoice as ModelChoice
from wirelessfl.models.losses.loss import Loss as Loss
from wirelessfl.models.metrics.metric import Measures as Measures
from wirelessfl.models.metrics.metric import Metric as Metric
from wirelessfl.models.metrics.metric import Predicted as Predicted
from wirelessfl.models.submodels.client_submodels import ClientSubmodels as ClientSubmodels
from wirelessfl.models.submodels.extract import Submodels as Submodels
from wirelessfl.models.submodels.flat import ParamSpec as ParamSpec
from wirelessfl.models.submodels.neurons import NeuronMap as NeuronMap
from wirelessfl.models.submodels.partition import Partition as Partition
from wirelessfl.runs.observers.observer import Observer as Observer
from wirelessfl.runs.observers.observer import Running as Running
from wirelessfl.training.cohort import Cohort as Cohort
from wirelessfl.training.cohort import Contrast as Contrast
from wirelessfl.training.cohort import Outputs as Outputs
from wirelessfl.training.cohort import Penalty as Penalty
from wirelessfl.training.rules import Payload as Payload
from wirelessfl.training.rules import Received as Received
from wirelessfl.training.rules import State as State
from wirelessfl.training.rules import idle_at_zero as idle_at_zero
from wirelessfl.training.workers.shards import Shards as Shards
from wirelessfl.training.workers.shards import sharded as sharded
