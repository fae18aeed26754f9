"""Writes the generated pages of the reference: public names, settings and choices.

Names are those in the lists of the modules' docstrings, which ``help`` prints; settings and choices
are described in their fields, which ``wirelessfl run --help all`` prints.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic.fields import FieldInfo
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

MODULES = (
    "channels",
    "solvers",
    "solvers.mask_sizes",
    "solvers.beamforming",
    "wirelessfl",
    "wirelessfl.data",
    "wirelessfl.models",
    "wirelessfl.losses",
    "wirelessfl.metrics",
    "wirelessfl.observers",
    "wirelessfl.results",
    "wirelessfl.theory",
    "wirelessfl.bridges",
    "wirelessfl.extend",
)
"""Public modules. A name of several modules is described where it stands first."""
ENTRY = re.compile(r"^    (\S.*?)(?:  +(\S.*))?$")
UNITS = {
    "dbm_per_hz": "dBm/Hz",
    "hz": "Hz",
    "ghz": "GHz",
    "db": "dB",
    "dbm": "dBm",
    "dbi": "dBi",
    "w": "W",
    "m": "m",
    "deg": "degrees",
    "mbps": "Mbit/s",
    "mib": "MiB",
    "seconds": "s",
    "joules": "J",
}
"""Units by the last words of a setting's name."""


EXPLAINED = {
    "reference/formulas#signal-to-noise-ratio": "snr_db path_gain_db noise_figure_db",
    "reference/formulas#channel-coherence": "coherence",
    "reference/formulas#time-of-local-training": "cpu_hz cycles_per_step cycles_per_flop",
    "reference/formulas#energy-of-local-training": "switched_capacitance",
    "reference/formulas#energy-of-an-upload": "transmit_power_w transmit_power_dbm",
    "reference/over-the-air#conventions-of-power-and-noise": "convention",
    "reference/over-the-air#truncated-channel-inversion": "threshold",
    "guides/own-channel#a-channel-matrix": "channel",
    "guides/radio#channels-that-differ-over-the-band": "delay_spread_ns delay_profile subcarriers",
    "guides/own-channel#a-network-of-arrays": "network",
    "guides/decisions#what-is-decided-in-each-round": (
        "allocation round_deadline energy_weight late order"
    ),
    "guides/decisions#a-cut-off-for-late-updates": "cutoff_seconds",
    "guides/devices-and-energy#energy-budgets": "client_joules",
    "guides/submodels#downlink-compression": "compression_bits compression_keep",
}
"""Sections of pages that explain settings, by the keys of these."""


@dataclass(frozen=True)
class Entry:
    """A public name and what the list says about it."""

    name: str
    text: str


@dataclass(frozen=True)
class Group:
    """Public names of a kind."""

    title: str
    entries: tuple[Entry, ...]

    @property
    def slug(self) -> str:
        """The title as a part of a file name."""
        return re.sub(r"\W+", "-", self.title.partition(":")[0].lower()).strip("-")


def listed(module: ModuleType) -> list[Group]:
    """The groups in a module's docstring; one with all names if the docstring has none."""
    groups: list[Group] = []
    title, entries = "", list[Entry]()
    for line in [*inspect.cleandoc(module.__doc__ or "").splitlines(), "end"]:
        entry = ENTRY.match(line)
        names = entry[1].split(", ") if entry else []
        if names and all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names):
            entries += [Entry(name, entry[2] or "") for name in names]
        elif line and not line.startswith(" "):
            if entries and all(hasattr(module, entry.name) for entry in entries):
                groups.append(Group(title, tuple(entries)))
            title, entries = line.rstrip(":"), []
    if groups:
        return groups
    names = [name for name in module.__all__ if name != "__version__"]
    return [Group("Names", tuple(Entry(name, first_line(module, name)) for name in names))]


def first_line(module: ModuleType, name: str) -> str:
    """The first line of the docstring of a public name."""
    text = documentation(module, name)
    return text[0].rstrip(".") if text else ""


def documentation(module: ModuleType, name: str) -> list[str]:
    """The lines of a name's docstring; of a value those that follow it in its module."""
    value = getattr(module, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return inspect.cleandoc(value.__doc__ or "").splitlines()
    package = module.__name__.partition(".")[0]
    assigned = re.compile(rf"^{name}\b.* = ", re.MULTILINE)
    for home, other in list(sys.modules.items()):
        ours = home.partition(".")[0] == package and vars(other).get(name) is value
        if ours and assigned.search(Path(other.__file__ or "").read_text(encoding="utf-8")):
            docs = ModuleAnalyzer.for_module(home).find_attr_docs()
            if ("", name) in docs:
                return [line for line in docs["", name] if line]
    return []


def title(text: str, line: str = "=") -> list[str]:
    """A heading."""
    return [text, line * len(text), ""]


def escaped(text: str) -> str:
    """A sentence of a docstring or a field as reStructuredText."""
    parts = re.split(r"(``.*?``|:\w+:`.*?`)", text)
    return "".join(
        part if index % 2 else re.sub(r"([\\*|_`])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def paragraphs(text: str) -> Iterator[str]:
    """A docstring as reStructuredText; indented lines, formulas and steps, are literal."""
    inside = False
    for line in text.splitlines():
        if line.startswith(" ") and not inside:
            yield from ("", ".. code-block:: text", "")
        elif inside and line and not line.startswith(" "):
            yield ""
        inside = line.startswith(" ") or (inside and not line)
        yield line if inside else escaped(line)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], widths: str) -> list[str]:
    """A table of lines of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (head, *rows):
        for index, cell in enumerate(row):
            first, *others = cell.split("\n")
            lines.append(f"   {'  -' if index else '* -'} {first}".rstrip())
            lines += [f"       {other}".rstrip() for other in others]
    return [*lines, ""]


class Names:
    """The pages of public names: one a module, and one a group of names."""

    def __init__(self) -> None:
        self.groups = {name: listed(importlib.import_module(name)) for name in MODULES}
        self.homes: dict[int, str] = {}  # by identity: values need not be hashable
        self.aliases: dict[int, list[str]] = {}
        for name, groups in self.groups.items():
            module = importlib.import_module(name)
            for group in groups:
                for entry in group.entries:
                    value, full = id(getattr(module, entry.name)), f"{name}.{entry.name}"
                    self.homes.setdefault(value, full)
                    self.aliases.setdefault(value, []).append(full)

    def pages(self) -> Iterator[tuple[str, list[str]]]:
        """The name and the lines of each page."""
        for name, groups in self.groups.items():
            module = importlib.import_module(name)
            lines = [*title(name), *self._introduction(module)]
            for group in groups:
                lines += title(escaped(group.title), "-") if len(groups) > 1 else []
                lines += self._table(module, group)
            if len(groups) == 1:
                yield name, [*lines, *self._entries(module, groups[0])]
                continue
            lines += [".. toctree::", "   :hidden:", ""]
            for group in groups:
                page = f"{name}.{group.slug}"
                heading = f"{group.title.partition(':')[0]} ({name})"
                lines.append(f"   {escaped(group.title.partition(':')[0])} <{page}>")
                body = [*title(escaped(heading)), *self._table(module, group)]
                yield page, [*body, *self._entries(module, group)]
            yield name, lines

    def _introduction(self, module: ModuleType) -> list[str]:
        """The first line of the docstring."""
        return [escaped(inspect.cleandoc(module.__doc__ or "").splitlines()[0]), ""]

    def _table(self, module: ModuleType, group: Group) -> list[str]:
        rows = []
        for entry in group.entries:
            home = self.homes[id(getattr(module, entry.name))]
            text = entry.text or first_line(module, entry.name)
            rows.append((f":py:obj:`{entry.name} <{home}>`", escaped(text)))
        return table(("name", ""), rows, "30 70")

    def _entries(self, module: ModuleType, group: Group) -> Iterator[str]:
        """The description of each name that has its home here."""
        for entry in group.entries:
            value = getattr(module, entry.name)
            name = f"{module.__name__}.{entry.name}"
            if self.homes[id(value)] != name:
                continue
            if inspect.isroutine(value):
                yield f".. autofunction:: {name}"
            elif not inspect.isclass(value):
                yield from (f".. py:data:: {name}", "")
                yield from (f"   {escaped(line)}" for line in documentation(module, entry.name))
            else:
                yield f".. autoclass:: {name}"
                yield "   :members:"
                if issubclass(value, Enum):
                    yield "   :undoc-members:"
                elif not getattr(value, "_is_protocol", False):
                    yield f"   :inherited-members: {', '.join(self._ancestors(value))}"
            yield from ("", f".. examples:: {' '.join(self.aliases[id(value)])}", "")

    def _ancestors(self, cls: type[Any]) -> list[str]:
        """The base classes that are described elsewhere: public ones, and those of others."""
        packages = ("channels", "solvers", "wirelessfl")
        return [
            base.__name__
            for base in cls.__mro__[1:]
            if id(base) in self.homes or base.__module__.partition(".")[0] not in packages
        ]


def unit(name: str) -> str:
    """The unit in the name of a setting."""
    return next((u for end, u in UNITS.items() if name == end or name.endswith(f"_{end}")), "")


def flag_row(flag: Any, default: Any, *, anchor: bool) -> list[str]:
    """The cells of a setting: flag and key, default and unit, meaning."""
    from wirelessfl.cli.help import flag_line

    option, line = flag_line(flag, default)
    text, stated, value = line.rpartition(" [")
    if not stated or not value.endswith("]"):
        text, value = line, ""
        if isinstance(default, bool):
            value = "on" if default else "off"
    value, measure = escaped(value.removesuffix("]")), unit(flag.key)
    number = re.fullmatch(r"[-\d.e,]*", value)
    if measure:
        value = f"{value} {measure}".strip() if number else f"{value}\n\nin {measure}"
    cell = f"``{option}``"
    if anchor:
        name = flag.name.replace("_", "-")
        cell = f".. _setting-{name}:\n\n{cell}\n\n``[{flag.section}] {flag.key}``"
    return [cell, value, escaped(text)]


def settings_page() -> list[str]:
    """All settings, by the headings of ``wirelessfl run --help all``."""
    from wirelessfl.cli.flags import all_flags
    from wirelessfl.cli.help import GROUPS
    from wirelessfl.config.choices import KINDS
    from wirelessfl.config.kinds import owner_names

    lines = [
        *title("Settings"),
        "All settings of a run. A setting has the same meaning as a flag of the command line, as a",
        "keyword of ``wirelessfl.Config.from_flags`` (with underscores), and as a key of its table",
        "in a TOML file, which stands below the flag. Without a default, a column has the unit of",
        "the setting alone. Those of a choice are also listed :doc:`with it <choices>`;",
        "where their defaults differ between choices, none is shown here. ``wirelessfl run",
        "ALGORITHM --help`` prints those that a run uses, ``wirelessfl list NAME`` one of them.",
        "",
    ]
    head = ("flag and TOML key", "default, unit", "meaning, and whose it is")
    for heading, sections in {"algorithm": ("algorithm",), **GROUPS}.items():
        rows = []
        for section in sections:
            if section in KINDS:
                name = section.replace("_", "-")
                cell = f".. _setting-{name}:\n\n``--{name} NAME``\n\n``[{section}] name``"
                meaning = f"{escaped(kind_text(section))}: :ref:`choices <choices-{section}>`"
                rows.append([cell, KINDS[section].default or "", meaning])
            for flag in all_flags():
                if flag.section == section:
                    row = flag_row(flag, None if flag.varies else flag.default, anchor=True)
                    owners = owner_names(flag.name) or owner_names(flag.key)
                    row[2] += f"\n\n*{escaped(owners)}*" if owners else ""
                    row[2] += explained(flag.key)
                    rows.append(row)
        lines += title(heading.capitalize(), "-")
        lines += table(head, rows, "30 20 50")
    return lines


def explained(key: str) -> str:
    """A link to the section that explains a setting; empty if there is none."""
    sections = [section for section, keys in EXPLAINED.items() if key in keys.split()]
    if not sections:
        return ""
    page, _, anchor = sections[0].partition("#")
    text = (Path(__file__).parent / f"{page}.md").read_text(encoding="utf-8")
    headings = re.findall(r"^##+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-"): line for line in headings}
    return f"\n\nSee `{slugs[anchor]} <../../{page}.html#{anchor}>`__."


def kind_text(kind: str) -> str:
    """What a kind of choices decides."""
    from wirelessfl.config.choices import KINDS
    from wirelessfl.config.kinds import words

    text = KINDS[kind].text or words(kind)
    return f"client selection: {text}" if kind == "select" else text


def choices() -> Iterator[tuple[str, str, Mapping[str, type[Any]]]]:
    """Each kind of choices: its name, its heading, its classes."""
    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.config.choices import KINDS
    from wirelessfl.models.metrics import METRICS

    yield "algorithm", "Algorithms", algorithm_classes()
    for kind, choice in KINDS.items():
        text = kind_text(kind)
        yield kind, text[0].upper() + text[1:], choice.classes()
    yield "metric", "Metrics", METRICS.classes()


def choice_pages() -> Iterator[tuple[str, list[str]]]:
    """An index of all choices, and a page for each kind."""
    from wirelessfl.cli.flags import flags_of
    from wirelessfl.data.choice import described

    index = [
        *title("Choices"),
        "Everything with a name that a run can be made of, each with the settings of its own.",
        "``wirelessfl list`` prints the names, ``wirelessfl list NAME`` one of them. Your own part",
        "is a class of the same kind, named by its path: :doc:`/guides/own-parts`.",
        "",
    ]
    toctree = [".. toctree::", "   :hidden:", ""]
    for kind, heading, classes in choices():
        option = "" if kind == "algorithm" else f" (``--{kind.replace('_', '-')}``)"
        page = [f".. _choices-{kind}:", "", *title(f"{escaped(heading)}{option}")]
        rows, bodies = [], []
        for name, cls in sorted(classes.items()):
            text = inspect.cleandoc(getattr(cls, "factory", cls).__doc__ or "")
            if kind == "dataset":
                text = f"{described(name).capitalize()}."
            text = text.partition("\nArgs:")[0].partition("\n>>>")[0].strip()
            first = re.split(r"(?<=[.)])\n|\n\n", text)[0].replace("\n", " ")
            rows.append((f":ref:`{name} <{kind}-{name}>`", escaped(first)))
            bodies += [f".. _{kind}-{name}:", "", *title(name, "-")]
            bodies += [*paragraphs(text), ""]
            settings = [
                flag_row(flag, flag.default, anchor=False) for flag in flags_of([(kind, cls)])
            ]
            if settings:
                bodies += table(("flag", "default, unit", "meaning"), settings, "30 20 50")
        index += [*title(f"{escaped(heading)}{option}", "-"), *table(("name", ""), rows, "25 75")]
        toctree.append(f"   {kind.replace('_', ' ').capitalize()} <choices-{kind}>")
        yield f"choices-{kind}", [*page, *table(("name", ""), rows, "25 75"), *bodies]
    yield "choices", [*index, *toctree]


def safe(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: what reStructuredText would read as markup is escaped."""
    if what in ("attribute", "property"):
        lines.insert(0, "\\ ")  # for napoleon, the first line is otherwise "type: description"
    literal = False
    for index, line in enumerate(lines):
        if literal and line and not line.startswith(" "):
            literal = False
        if line.lstrip().startswith((">>>", "...", ":param", ":type", ".. ")) or literal:
            continue
        literal = line.endswith("::")
        parts = re.split(r"(``.*?``|:[\w:]+:`.*?`|`.*?`)", line)
        for at in range(0, len(parts), 2):
            parts[at] = re.sub(r"(?<!\\)(\||(?<!\*)\*(?!\*)|_(?=\W|$))", r"\\\1", parts[at])
        lines[index] = "".join(parts)


def with_fields(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Add the settings of a choice, whose fields describe them, to its docstring."""
    from wirelessfl.base.registry import Choice

    if what != "class" or not issubclass(value, Choice) or not is_dataclass(value):
        return
    described = {match[1] for line in lines if (match := re.match(r":param (\w+):", line))}
    hints = get_type_hints(value, include_extras=True)
    for entry in fields(value):
        text = FieldInfo.from_annotation(hints[entry.name]).description
        if text and entry.name not in described:
            lines += [f":param {entry.name}: {escaped(text)}"]
    lines.append("")


def plain_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """The signature, for a choice without the notes in its annotations."""
    from wirelessfl.base.registry import Choice

    if what == "class" and issubclass(value, Choice) and is_dataclass(value):
        parameters = [
            entry.replace(annotation=inspect.Parameter.empty)
            for entry in inspect.signature(value).parameters.values()
        ]
        return str(inspect.Signature(parameters)), ""
    if "TypeAliasForwardRef" not in f"{signature} {returns}":
        return None
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return alias.sub(r"\1", signature or ""), alias.sub(r"\1", returns or "")


def skipped(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the class describes."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field") else None


def write(app: Sphinx) -> None:
    """Write the pages whose lines have changed, and remove those that have no content."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    pages = {**dict(Names().pages()), "settings": settings_page(), **dict(choice_pages())}
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, lines in pages.items():
        label = f".. _reference-{name.replace('.', '-')}:"
        path, text = folder / f"{name}.rst", "\n".join([label, "", *lines]) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Examples(SphinxDirective):
    """The examples of the gallery that use a name of several modules; empty if there are none."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Any]:
        """Insert a heading and the thumbnails of the examples."""
        names = [name for name in self.arguments[0].split() if name in examples(self.env.app)]
        if names:
            name = self.arguments[0].split()[0].rpartition(".")[2]
            lines = [
                f".. rubric:: Examples using {name}",
                "",
                f".. minigallery:: {' '.join(names)}",
                "",
            ]
            self.state_machine.insert_input(lines, self.env.docname)
        return []


def examples(app: Sphinx) -> Mapping[str, Any]:
    """The examples by the names that they use; none if the site has no gallery."""
    folder = getattr(app.config, "sphinx_gallery_conf", {}).get("backreferences_dir")
    path = Path(app.srcdir, folder or "", "backreferences_all.json")
    if not folder or not path.exists():
        return {}
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, changed: int) -> Mapping[str, Any]:
    by_name: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return by_name


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the pages to the build."""
    app.add_directive("examples", Examples)
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", safe, priority=400)
    app.connect("autodoc-process-docstring", with_fields, priority=600)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
