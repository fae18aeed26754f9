"""The clients of a Flower app as those of a run: its functions are called without its runtime.

An ``ArrayRecord`` holds the state dict of the run's model. Its trainable parameters are our flat
parameters; its other tensors are sent as they are, and must come back unchanged.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.packages import flower as flower_package
from wirelessfl.base.wording import shown
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.trainer import ClientTraining, Trained, Trainer

Scalar = bool | int | float | str
KEYS = ("lr", "server-round")
"""Entries of the messages' ``ConfigRecord`` that the run determines."""
RECORDS = ("ArrayRecord", "MetricRecord", "ConfigRecord")
"""Kinds of records; those of Flower's earlier names derive from them."""


def flower(
    client_app: Any,
    *,
    run_config: Mapping[str, Scalar] | None = None,
    train_config: Mapping[str, Any] | None = None,
    fraction_evaluate: float = 0.0,
    weighted_by_key: str | None = "num-examples",
    arrayrecord_key: str = "arrays",
    configrecord_key: str = "config",
) -> Trainer:
    """The clients of a Flower ``ClientApp``, to give to ``wirelessfl.run(trainer=...)``.

    The app's function ``@app.train()`` trains each client that takes part, with Python's, NumPy's
    and torch's global generators seeded by the run's seed, client and round. All else is the run's:
    who takes part, when, over which radio, and what the server does with the changes. The app is
    called directly, one client after the other; Flower's runtime is not started.

    Client k gets ``context.node_config`` with ``partition-id`` k and ``num-partitions``, and the
    ``context.state`` that it left, also after ``wirelessfl.resume``. Its message has the global
    model as an ``ArrayRecord`` with the names of ``model.state_dict()``, and a ``ConfigRecord``
    with the run's step size ``lr``, the number ``server-round`` from 1, and ``train_config``. The
    metrics of its reply are averaged with the same weights as the models, into fields of rows.

    Seconds and joules follow from the run's settings ``local_epochs`` or ``local_steps`` and
    ``batch_size``: set them to what the app does.

    >>> import torch, wirelessfl
    >>> from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    >>> from flwr.clientapp import ClientApp
    >>> app = ClientApp()
    >>> @app.train()
    ... def train(message, context):
    ...     model = torch.nn.Linear(2, 2)
    ...     model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    ...     with torch.no_grad():
    ...         model.bias += message.content["config"]["lr"]  # instead of training
    ...     content = {
    ...         "arrays": ArrayRecord(model.state_dict()),
    ...         "metrics": MetricRecord({"num-examples": 4}),
    ...     }
    ...     return Message(RecordDict(content), reply_to=message)
    >>> x, y = torch.randn(12, 2), torch.tensor([0, 1] * 6)
    >>> data = x[:8], y[:8], x[8:], y[8:]
    >>> model = torch.nn.Linear(2, 2)
    >>> config = wirelessfl.Config.from_flags("fedavg", clients=2, rounds=1, lr=0.5, out="my-app")
    >>> trainer = wirelessfl.bridges.flower(app)
    >>> result = wirelessfl.run(config, model=model, data=data, trainer=trainer)
    >>> bool((result.params["bias"] == model.bias + 0.5).all())
    True

    Args:
        client_app: the app, with functions of Flower's message API.
        run_config: ``context.run_config``.
        train_config: further entries of the ``ConfigRecord`` of the messages.
        fraction_evaluate: fraction of the clients, evenly spaced, that evaluate the global model
            for each row by ``@app.evaluate()``; 0 for none. They cannot change their state.
        weighted_by_key: the metric by which updates are weighted; None for the run's weights.
        arrayrecord_key: name of the ``ArrayRecord`` in messages.
        configrecord_key: name of the ``ConfigRecord`` in messages.

    Raises:
        ImportError: flwr is not installed.
        ConfigError: an argument has another type or value.
    """
    package = flower_package()
    from flwr.clientapp import ClientApp

    if not isinstance(client_app, ClientApp):
        raise ConfigError(
            f"client_app is {shown(client_app)}: give a flwr.clientapp.ClientApp, e.g. app of your "
            "client_app.py."
        )
    functions = _functions(client_app)
    for kind, asked in (("train", True), ("evaluate", fraction_evaluate > 0)):
        if asked and functions is not None and f"{kind}.default" not in functions:
            raise ConfigError(
                f"client_app has no function @app.{kind}(): define it with Flower's message API; "
                "a client_fn is not called here."
            )
    if not 0 <= fraction_evaluate <= 1:
        raise ConfigError(f"fraction_evaluate is {fraction_evaluate}: give a number from 0 to 1.")
    for name, table in (("run_config", run_config), ("train_config", train_config)):
        if table is not None and not isinstance(table, Mapping):
            raise ConfigError(f"{name} is {shown(table)}: give a dict of values by name.")
    set_by_run = [name for name in KEYS if name in (train_config or {})]
    if set_by_run:
        raise ConfigError(
            f"train_config has {set_by_run[0]!r}, which follows from the run: leave it out"
            + (", and set lr in the run's settings." if set_by_run[0] == "lr" else ".")
        )
    keys = Keys(weighted_by_key, arrayrecord_key, configrecord_key)
    return FlowerClients(
        client_app,
        package,
        dict(run_config or {}),
        dict(train_config or {}),
        fraction_evaluate,
        keys,
    )


def _functions(client_app: Any) -> Mapping[str, Any] | None:
    """The app's functions by kind and action; None if this version of Flower hides them."""
    functions = getattr(client_app, "_registered_funcs", None)
    return functions if isinstance(functions, Mapping) else None


@dataclass(frozen=True)
class Keys:
    """Names in messages and replies, see ``flower``."""

    weight: str | None
    arrays: str
    config: str


@dataclass(frozen=True, eq=False)
class FlowerClients(Trainer):
    """A Flower app with its configuration; arguments as for ``flower``."""

    app: Any
    package: Any
    run_config: dict[str, Scalar]
    train_config: dict[str, Any]
    fraction_evaluate: float
    keys: Keys

    @property
    def title(self) -> str:
        """Its name in messages."""
        return "ClientApp"

    @property
    def code(self) -> object:
        """The app's functions and its configuration."""
        keys = (self.keys.weight, self.keys.arrays, self.keys.config)
        functions = dict(_functions(self.app) or {})
        return (functions, self.run_config, self.train_config, self.fraction_evaluate, keys)

    def begin(self, module: nn.Module, spec: ParamSpec, clients: int) -> ClientTraining:
        """The training of a run, whose clients have no state yet."""
        return FlowerTraining(self, Layout.of(module, spec), clients)


@dataclass(frozen=True, eq=False)
class Layout:
    """The arrays of a model's state dict, by name in its order.

    Args:
        spec: the trainable parameters.
        constants: the other tensors, which clients receive and must not change.
        names: names of all arrays.
    """

    spec: ParamSpec
    constants: Mapping[str, np.ndarray]
    names: Sequence[str]

    @classmethod
    def of(cls, module: nn.Module, spec: ParamSpec) -> Layout:
        """The layout of a model."""
        tensors = {n: t for n, t in module.state_dict().items() if isinstance(t, Tensor)}
        trained = {*spec.shapes, *spec.ties}
        others = {
            name: tensor.detach().cpu().numpy().copy()
            for name, tensor in tensors.items()
            if name not in trained
        }
        return cls(spec, others, [*tensors])

    def arrays(self, params: Tensor) -> dict[str, np.ndarray]:
        """All arrays by name, with the trainable parameters from ``params`` [P]."""
        trained = self.spec.named(params.detach().cpu())
        return {
            name: self.constants[name] if name in self.constants else trained[name].numpy()
            for name in self.names
        }

    def flat(self, arrays: Mapping[str, np.ndarray]) -> Tensor:
        """The trainable parameters [P] of a reply.

        Raises:
            ConfigError: names, dtypes or shapes differ from those of the model, an array that is
                no trainable parameter has changed, or two names of one parameter differ.
        """
        if arrays.keys() != set(self.names):
            missing = [name for name in self.names if name not in arrays]
            extra = [name for name in arrays if name not in self.names]
            what = f"without {missing[0]!r}" if missing else f"with {extra[0]!r}"
            raise ConfigError(
                f"replied with arrays {what}, unlike the run's model: reply with "
                "ArrayRecord(model.state_dict()) of the same model."
            )
        flat = torch.empty(self.spec.size)
        views = self.spec.views(flat)
        for name in self.names:
            array = arrays[name]
            target = views.get(self.spec.ties.get(name, name))
            like = self.constants[name] if target is None else target.numpy()
            if array.dtype != like.dtype or array.shape != like.shape:
                raise ConfigError(
                    f"replied with {name!r} as {array.dtype} {list(array.shape)}, which the run's "
                    f"model has as {like.dtype} {list(like.shape)}: reply with the same dtypes and "
                    "shapes."
                )
            if target is None and array.tobytes() != like.tobytes():
                raise ConfigError(
                    f"replied with another value of {name!r}, which is no trainable parameter: "
                    "only parameters are averaged; keep the others in context.state, or make the "
                    "model without them."
                )
            if target is not None and name not in self.spec.ties:
                target.numpy()[...] = array
        for alias, name in self.spec.ties.items():
            if alias in arrays and not np.array_equal(arrays[alias], arrays[name], equal_nan=True):
                raise ConfigError(
                    f"replied with different values of {alias!r} and {name!r}, which are one "
                    "parameter of the run's model: tie them in the app, too."
                )
        return flat


class FlowerTraining(ClientTraining):
    """The training of a run by a Flower app.

    Args:
        clients: the app.
        layout: arrays of the run's model.
        count: number of registered clients.
    """

    def __init__(self, clients: FlowerClients, layout: Layout, count: int) -> None:
        self.clients, self.layout, self.count = clients, layout, count
        self._states: dict[int, Any] = {}

    def received(self, params: Tensor) -> Any:
        """The model as arrays of Flower, by name."""
        array = self.clients.package.Array
        return {name: array(value) for name, value in self.layout.arrays(params).items()}

    def train(self, client: int, received: Any, lr: float, number: int) -> Trained:
        """Let the app train a client."""
        state = self._states.get(client)
        context = self._context(
            client, self.clients.package.RecordDict() if state is None else state
        )
        config = {**self.clients.train_config, "lr": lr, "server-round": number + 1}
        content = self._call("train", client, received, config, number + 1, context)
        if state is not None or len(context.state):
            self._states[client] = context.state
        try:
            params = self.layout.flat(self._arrays(content, received))
        except ConfigError as error:
            raise TrainingError(f"ClientApp, client {client}: {error}") from error
        return Trained(params, *self._metrics(client, content))

    def evaluated(self, params: Tensor, version: int) -> dict[str, float]:
        """Means of the metrics with which some clients reply to an evaluation."""
        count = math.ceil(self.clients.fraction_evaluate * self.count)
        if not count:
            return {}
        received, numbers = self.received(params), list[tuple[float, dict[str, float]]]()
        for client in (np.arange(count) * self.count // count).tolist():
            state = self._states.get(client)
            kept = {} if state is None else decoded(encoded(state), self.clients.package)
            context = self._context(client, self.clients.package.RecordDict(dict(kept)))
            config = {**self.clients.train_config, "server-round": version}
            content = self._call("evaluate", client, received, config, version, context)
            weight, metrics = self._metrics(client, content)
            if numbers and metrics.keys() != numbers[0][1].keys():
                raise TrainingError(
                    f"ClientApp, client {client}: replied to an evaluation with the metrics "
                    f"{sorted(metrics)}, and another client with {sorted(numbers[0][1])}: reply "
                    "with the same metrics."
                )
            numbers.append((1.0 if weight is None else weight, metrics))
        total = sum(weight for weight, _ in numbers)
        return {
            name: sum(w * m[name] for w, m in numbers) / total if total else math.nan
            for name in numbers[0][1]
        }

    def states(self) -> dict[int, bytes]:
        """The state of each client that has one."""
        return {client: encoded(state) for client, state in self._states.items()}

    def restore(self, states: Mapping[int, bytes]) -> None:
        """Continue from the result of ``states``."""
        self._states = {c: decoded(state, self.clients.package) for c, state in states.items()}

    def _context(self, client: int, state: Any) -> Any:
        return self.clients.package.Context(
            run_id=1,
            node_id=client,
            node_config={"partition-id": client, "num-partitions": self.count},
            state=state,
            run_config=dict(self.clients.run_config),
        )

    def _call(
        self, kind: str, client: int, arrays: Any, config: dict[str, Any], round_: int, context: Any
    ) -> Any:
        """The content of the app's reply to a message."""
        flwr, keys = self.clients.package, self.clients.keys
        # Each message has records of its own, which the app may change.
        content = flwr.RecordDict(
            {keys.arrays: flwr.ArrayRecord(arrays), keys.config: flwr.ConfigRecord(config)}
        )
        metadata = flwr.Metadata(
            run_id=1,
            message_id=f"{kind}-{round_}-{client}",
            src_node_id=0,
            dst_node_id=client,
            reply_to_message_id="",
            group_id=str(round_),
            created_at=time.time(),
            ttl=flwr.DEFAULT_TTL,
            message_type=kind,
        )
        reply = self.clients.app(flwr.Message(content=content, metadata=metadata), context)
        if not isinstance(reply, flwr.Message):
            raise TrainingError(
                f"ClientApp, client {client}: @app.{kind}() returned {shown(reply)}: return "
                "Message(content, reply_to=message)."
            )
        if reply.has_error():
            raise TrainingError(
                f"ClientApp, client {client}: @app.{kind}() replied with the error "
                f"{reply.error.reason!r}."
            )
        return reply.content

    def _arrays(self, content: Any, received: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays of a reply to a message with the arrays ``received``."""
        records = [*content.array_records.values()]
        if len(records) != 1:
            raise ConfigError(
                f"replied with {len(records)} ArrayRecords: reply with one, that of the model."
            )
        return {name: as_numpy(array, received.get(name)) for name, array in records[0].items()}

    def _metrics(self, client: int, content: Any) -> tuple[float | None, dict[str, float]]:
        """The weight of a reply, if there is to be one, and its other metrics as fields of rows."""
        key, values = self.clients.keys.weight, dict[str, Any]()
        for record in content.metric_records.values():
            values |= record
        if key is not None and not isinstance(values.get(key), int | float):
            raise TrainingError(
                f"ClientApp, client {client}: replied without the metric {key!r}, by which its "
                "update is weighted: reply with it in a MetricRecord, or choose weighted_by_key."
            )
        weight = None if key is None else float(values.pop(key))
        metrics: dict[str, float] = {}
        for name, value in values.items():
            field_name = name.replace("-", "_")
            fields = {field_name: value}
            if isinstance(value, list):
                fields = {f"{field_name}_{i}": part for i, part in enumerate(value)}
            for field_name, number in fields.items():
                if field_name in metrics:
                    raise TrainingError(
                        f"ClientApp, client {client}: two metrics of its reply are the field "
                        f"{field_name!r} of rows: reply with other names."
                    )
                metrics[field_name] = float(number)
        return weight, metrics


def as_numpy(array: Any, like: Any) -> np.ndarray:
    """An ``Array`` in NumPy; read-only if it has the same header as the array ``like``.

    Reading a header takes longer than copying a small array.
    """
    if like is None or array.stype != like.stype or len(array.data) != len(like.data):
        return np.asarray(array.numpy())
    size = math.prod(like.shape) * np.dtype(like.dtype).itemsize
    end = len(like.data) - size
    if array.data[:end] != like.data[:end]:
        return np.asarray(array.numpy())
    return np.frombuffer(array.data, like.dtype, offset=end).reshape(like.shape)


def encoded(state: Any) -> bytes:
    """A ``RecordDict`` as bytes: the length of a JSON header, the header, and the arrays' bytes."""
    records, arrays = list[Any](), list[bytes]()
    for key, record in state.items():
        items = list[Any]()
        for name, value in record.items():
            if hasattr(value, "stype"):
                items.append([name, value.dtype, list(value.shape), value.stype, len(value.data)])
                arrays.append(value.data)
            else:
                items.append([name, value])
        kind = next(cls.__name__ for cls in type(record).__mro__ if cls.__name__ in RECORDS)
        records.append([key, kind, items])
    header = json.dumps(records, default=lambda content: {"hex": content.hex()}).encode()
    return b"".join([len(header).to_bytes(8, "little"), header, *arrays])


def decoded(content: bytes, package: Any) -> Any:
    """The ``RecordDict`` of these bytes, see ``encoded``."""
    end = 8 + int.from_bytes(content[:8], "little")
    records = json.loads(content[8:end], object_hook=lambda entry: bytes.fromhex(entry["hex"]))
    state = package.RecordDict()
    for key, kind, items in records:
        if kind not in RECORDS:
            raise ValueError(f"{key} is a {kind}")
        values = dict[str, Any]()
        for name, *parts in items:
            if kind == "ArrayRecord":
                dtype, shape, stype, length = parts
                data = content[end : end + length]
                values[name] = package.Array(dtype, tuple(shape), stype, data)
                end += length
            else:
                [values[name]] = parts
        state[key] = getattr(package, kind)(values)
    return state
