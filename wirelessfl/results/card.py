"""A folder with a run's model and its card, as the Hugging Face hub has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable, replacing
from wirelessfl.base.import_paths import short
from wirelessfl.base.wording import count_of
from wirelessfl.config.stored import dataset_of, plain
from wirelessfl.data import WITHOUT_IMAGES, dataset_names
from wirelessfl.models import MODELS, parameters_of
from wirelessfl.models.choice import DEFAULTS
from wirelessfl.results.export import check_outside, write_params
from wirelessfl.results.overview import about_of, non_defaults
from wirelessfl.results.runs import Runs
from wirelessfl.results.tables import number_text
from wirelessfl.runs.result import RunResult

MODEL, CARD = "model.safetensors", "README.md"
ON_HUB = {
    "ag-news": "fancyzhx/ag_news",
    "cifar10": "uoft-cs/cifar10",
    "cifar100": "uoft-cs/cifar100",
    "fashion-mnist": "zalando-datasets/fashion_mnist",
    "mnist": "ylecun/mnist",
    "qnli": "nyu-mll/glue",
    "qqp": "nyu-mll/glue",
    "sst2": "nyu-mll/glue",
    "svhn": "ufldl-stanford/svhn",
}
"""Names of data sets on the hub."""
COSTS = {
    "sim_seconds": "simulated time (s)",
    "joules": "energy per client, mean (J)",
    "joules_max": "energy of the client that uses the most (J)",
    "uplink_mib": "uplink per client, mean (MiB)",
    "downlink_mib": "downlink per client, mean (MiB)",
}
"""Fields of a row that a card has besides accuracies and losses, in words."""


def card(runs: Runs, folder: Path, *, best: bool = False) -> Path:
    """Write a run's parameters and its model card to a folder, for ``upload_folder`` of the hub.

    Args:
        runs: one run.
        folder: receives ``model.safetensors`` and ``README.md``; created if it is missing.
        best: the best parameters, and their row, instead of the last ones.

    Returns:
        The folder.

    Raises:
        ConfigError: there are several runs, the run is unfinished, it has not kept its best
            parameters, or the folder has a card or a model, or is in that of a run.
    """
    if len(runs) != 1:
        raise ConfigError(f"{len(runs)} runs are given, but a card is that of one: name one run.")
    [run] = runs
    if not best and not (run.finished and run.rows):
        raise ConfigError(
            f"{run.directory} is unfinished, and a card states the results of the last row: resume "
            f"it first, wirelessfl resume {run.directory}"
        )
    if folder.is_file() or folder.suffix == Path(MODEL).suffix:
        raise ConfigError(f"output is {folder}: with --card, name a folder.")
    check_outside(runs, folder / MODEL)
    if any((folder / name).exists() for name in (CARD, MODEL)):
        raise ConfigError(f"{folder} has a {CARD} or a {MODEL}: name another folder.")
    check_writable(folder, "output")
    metadata = write_params(runs, folder / MODEL, best=best)
    rows = [json.loads(metadata["row"])] if best else None
    rows = rows or [run.rows_of(task)[-1] for task in run.tasks] or run.rows[-1:]
    with replacing(folder / CARD) as draft:
        draft.write_text(_text(run, rows, folder.resolve().name, best), encoding="utf-8")
    return folder


def _text(run: RunResult, rows: Sequence[Mapping[str, Any]], name: str, best: bool) -> str:
    """The card: its metadata, and what a reader wants to know."""
    front = "\n".join(yaml_lines(_metadata(run, rows, name)))
    settings, about = run.settings, about_of(run)
    model, data = short(str(settings.get("model", ""))), run.label.partition(" on ")[2]
    clients, cells = settings.get("clients"), settings.get("cells", 1)
    where = "" if clients is None else f" among {count_of(clients, 'client')}"
    where += f" in {count_of(cells, 'cell')}" if clients is not None and cells > 1 else ""
    uplink = f", uplink `{short(str(settings['uplink']))}`" if "uplink" in settings else ""
    objects = plain(dict((run.tables or {}).get("given", {}))).items()
    objects_text = (
        "; given from Python: " + ", ".join(f"{k} {v}" for k, v in objects) if objects else ""
    )
    intro = (
        f"Model `{model}`, trained on `{data}` by federated learning with algorithm "
        f"`{short(settings['algorithm'])}`{where}{uplink}. The wireless network was simulated by "
        f"wirelessfl {about.get('wirelessfl', '')}: seconds, joules and MiB are those of the "
        "simulated network."
    )
    return f"""---
{front}
---

# {run.label}

{intro}

## Results

{_results(rows, best)}

## Settings

Those that differ from the defaults, and the algorithm{objects_text}. As a file,
`wirelessfl run --config FILE` reads them.

```toml
{tomli_w.dumps(plain(non_defaults(run)[0])).strip()}
```

## Weights

{_loading(run)}
"""


def _metadata(run: RunResult, rows: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """The metadata of the card; a licence is not known, and is left to the author."""
    settings, results = run.settings, list[dict[str, Any]]()
    for row in rows:
        data = dataset_of(run.settings_of(row.get("task")))
        metrics = [
            {"type": field, "value": row[field], "name": words}
            for field, words in _fields(row).items()
        ]
        results.append(
            {
                "task": {"type": _kind(data, row)},
                "dataset": {"type": ON_HUB.get(data, data), "name": data, "split": "test"},
                "metrics": metrics,
            }
        )
    datasets = {result["dataset"]["name"] for result in results} & ON_HUB.keys()
    kinds = {result["task"]["type"] for result in results}
    choices = [short(str(settings[k])) for k in ("algorithm", "uplink") if k in settings]
    tags = ["federated-learning", "wireless", "wirelessfl", "pytorch", "safetensors", *choices]
    base = settings.get("pretrained")
    return {
        **({} if base is None or Path(str(base)).is_absolute() else {"base_model": base}),
        **({"datasets": sorted({ON_HUB[name] for name in datasets})} if datasets else {}),
        "metrics": ["accuracy" if "accuracy" in rows[0] else "loss"],
        **({"pipeline_tag": kind} if len(kinds) == 1 and "-" in (kind := min(kinds)) else {}),
        "tags": list(dict.fromkeys(tags)),
        "model-index": [{"name": name, "results": results}],
    }


def _kind(data: str, row: Mapping[str, Any]) -> str:
    """The hub's name of what a model does; only "classification" of data sets of users."""
    if "accuracy" not in row:
        return "regression"
    if data not in dataset_names():
        return "classification"
    if data == "shakespeare":
        return "text-generation"
    return "text-classification" if data in WITHOUT_IMAGES else "image-classification"


def _fields(row: Mapping[str, Any]) -> dict[str, str]:
    """The fields that a card has of a row, in words: quality first, then costs."""
    measured = ("accuracy", "loss", "validation_accuracy", "validation_loss")
    words = {name: name.replace("_", " ") for name in measured} | COSTS
    return {name: text for name, text in words.items() if row.get(name) is not None}


def _results(rows: Sequence[Mapping[str, Any]], best: bool) -> str:
    """A table with a column per row, and what the columns are."""
    which = "the best evaluation" if best else "the last round"
    heads = [f"{row['task']}, round {row['round']}" if "task" in row else f"round {row['round']}"
             for row in rows]  # fmt: skip
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(rows)]
    names = {name: text for row in rows for name, text in _fields(row).items()}
    for name, text in names.items():
        values = [row.get(name) for row in rows]
        cells = ["diverged" if value is None else number_text(value) for value in values]
        lines.append(f"| {text} | {' | '.join(cells)} |")
    note = "Accuracies and losses are those of the test samples, unless they say validation."
    return "\n".join([f"After {which}; costs are totals since the start.", "", *lines, "", note])


def _loading(run: RunResult) -> str:
    """Code that loads the weights, with the constructor of a built-in model."""
    constructor = None
    with suppress(ConfigError):  # the settings name code that is not trusted
        constructor = None if len(run.tasks) > 1 else _constructor(run)
    imports, model, text = "", "MyModel()  # of the same layers", ""
    if constructor is not None:
        name, model, shape = constructor
        imports = f"from wirelessfl.models import {name}\n"
        pixels = run.settings.get("pixels", "signed")
        ranges = {"signed": "in [-1, 1]", "unit": "in [0, 1]", "standard": "standardised"}
        text = f"\nInputs have shape [batch, {', '.join(map(str, shape))}]"
        text += f", with pixels {ranges[pixels]}.\n" if len(shape) == 3 else ".\n"
    elif len(run.tasks) > 1:
        text = "\nNames of parameters begin with those of their tasks and a dot.\n"
    return f"""```python
from safetensors.torch import load_file
{imports}
model = {model}
model.load_state_dict(load_file("{MODEL}"), strict=False)
model.eval()
```
{text}""".rstrip()


def _constructor(run: RunResult) -> tuple[str, str, tuple[int, ...]] | None:
    """Class, call and input shape of a built-in model of known data; None for others."""
    config = run.config
    model, facts = MODELS.get(config.named("model")), config.dataset.facts()
    replaced = config.given
    if model is None or facts is None or replaced.model is not None or replaced.data is not None:
        return None
    accepted = parameters_of(model)
    values = {**vars(facts), **vars(config.model)}
    options = {
        name: value
        for name, value in values.items()
        if name in accepted and name not in ("input_shape", "classes")
        if value is not None and value != DEFAULTS.get(name)
    }
    if options.pop("embedding_file", None):  # the weights replace its vectors
        options["embedding"] = run.params["embedding.weight"].shape[1]
    arguments = [repr(facts.input_shape), repr(facts.classes)]
    arguments += [f"{name}={value!r}" for name, value in options.items()]
    return model.name, f"{model.name}({', '.join(arguments)})", facts.input_shape


def yaml_lines(value: Any, indent: str = "") -> list[str]:
    """Tables, lists, strings and numbers as lines of YAML."""
    entries = value.items() if isinstance(value, dict) else ((None, entry) for entry in value)
    lines = []
    for key, entry in entries:
        start = f"{indent}- " if key is None else f"{indent}{key}:"
        if not isinstance(entry, dict | list):
            lines.append(f"{start.rstrip()} {_scalar(entry)}")
        elif key is None:
            first, *rest = yaml_lines(entry, f"{indent}  ")
            lines += [start + first.lstrip(), *rest]
        else:
            lines += [start, *yaml_lines(entry, f"{indent}  ")]
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, float):  # YAML reads 1e-05, without a point, as a word
        text = f"{value:.6g}"
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
