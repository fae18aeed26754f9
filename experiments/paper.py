"""``python -m experiments.PAPER NAME --scale SCALE``: reproduce a paper's figures and tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args

from experiments.printed import Printed, numbered, printed_of, ranges
from experiments.runs import Store
from experiments.studies import SCALES, Results, Scale, Settings, Study
from experiments.tables import not_run, outdated
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.figures.curves import StyleName, save_figure, use_style
from wirelessfl.base.files import check_writable
from wirelessfl.base.wording import shown, suggestion
from wirelessfl.cli.parser import Parser

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawn: TypeAlias = "Figure | Mapping[str, Figure] | None"
"""A figure, or several by the ends of their files' names; None if there is nothing to draw."""


class Experiment(NamedTuple):
    """A figure or table of a paper: functions of the runs; other arguments are fixed.

    Args:
        study: name of its settings file; several names: it shows the runs of all these studies.
        table: returns its numbers as a Markdown table.
        draw: draws its figure, whose file has the name of the experiment; None for a table.
        short: returns a shorter table, for the results page; None if it is the same.
    """

    study: str | tuple[str, ...]
    table: Callable[[Results], str]
    draw: Callable[[Results], Drawn] | None = None
    short: Callable[[Results], str] | None = None


@dataclass(frozen=True)
class Paper:
    """The experiments of a paper.

    Args:
        name: name of its folder.
        settings: folder of the studies' settings files.
        experiments: its figures and tables, by name.
        complete: adds settings that depend on several others, see ``Study.load``.
        texts: tables that are computed without runs, by name, for the results page.
        makers: functions that compute the files of these tables again, by name.
        pictures: functions that draw the figures of these tables, by name.
        numbers: returns the numbers in the sentences of its pages, by name, from its ``Evidence``.
        pages: further pages with its blocks, relative to ``docs``, besides its results page.
    """

    name: str
    settings: Path
    experiments: dict[str, Experiment]
    complete: Callable[[Settings, Scale], Settings] = lambda settings, scale: settings
    texts: dict[str, Callable[[], str]] = field(default_factory=dict)
    makers: dict[str, Callable[[], None]] = field(default_factory=dict)
    pictures: dict[str, Callable[[], Drawn]] = field(default_factory=dict)
    numbers: Callable[[Any], dict[str, str]] = lambda evidence: {}
    pages: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.settings.parent

    @cached_property
    def printed(self) -> dict[str, Printed]:
        """The figures and tables that the paper prints, by name."""
        return printed_of(self.folder)

    def named(self, name: str, others: Iterable[str] = ()) -> str:
        """The name of the experiment, text or action that a command's name asks for.

        Args:
            name: its own name, or that of a figure or table of the paper.
            others: names of further actions.

        Raises:
            ConfigError: if there is no such figure or table, or nothing shows it.
        """
        choices = [*self.experiments, *self.texts, *others, "all"]
        if name in self.printed and self.printed[name].absent:
            one = self.printed[name]
            raise ConfigError(f"{one.number} ({one.content}) is not drawn: {one.absent}.")
        if name in self.printed:
            return self.printed[name].command
        if name in choices:
            return name
        panels = [one for one in self.printed if one.startswith(name)]
        if numbered(name) and panels:
            raise ConfigError(f"name is {shown(name)}: choose a panel, {', '.join(panels)}.")
        if numbered(name) and self.printed:
            raise ConfigError(
                f"name is {shown(name)}: the paper has {ranges(self.printed)}. "
                "python -m experiments list says what shows them."
            )
        advice = suggestion(name, [*choices, *self.printed])
        more = ", or a figure or table of the paper" if self.printed else ""
        raise ConfigError(
            f"name is {shown(name)}, which is unknown.{advice} Choose {', '.join(choices)}{more}."
        )

    def store(self, scale: Scale, out: Path, rows: Path | None = None) -> Store:
        """Where the runs of a scale are: in the repository, those of scale ``smoke`` in ``out``."""
        committed = self.folder / "rows"
        return Store(rows or (out / "rows" if scale == "smoke" else committed), out / "runs")

    def study(
        self, name: str | tuple[str, ...], scale: Scale, data_dir: Path | None = None
    ) -> Study:
        """The study called ``name``, or several studies as one."""
        if isinstance(name, tuple):
            return Study.joined([self.study(one, scale, data_dir) for one in name])
        return Study.load(self.settings / f"{name}.toml", scale, data_dir, self.complete)

    def studies(self, scale: Scale, data_dir: Path | None = None) -> list[Study]:
        """All studies, once each."""
        shown = [e.study for e in self.experiments.values()]
        names = dict.fromkeys(n for one in shown for n in ([one] if isinstance(one, str) else one))
        return [self.study(name, scale, data_dir) for name in names]

    def reproduce(
        self,
        names: Sequence[str],
        scale: Scale,
        out: Path,
        *,
        make: bool = False,
        rows: Path | None = None,
        data_dir: Path | None = None,
        jobs: int = 1,
        ray: str | None = None,
        style: StyleName = "ieee",
    ) -> dict[str, Results]:
        """Write each table and figure into ``out``, from the rows of finished runs.

        Args:
            names: names of experiments.
            scale: size of the runs.
            out: folder for tables and figures.
            make: whether to train missing runs first.
            rows: folder of finished runs; None for that of the paper, or ``out`` at scale smoke.
            data_dir: folder of the data sets.
            jobs: number of concurrent runs, one local process each.
            ray: address of a Ray cluster, or ``local``.
            style: sizes of the figures, see ``wirelessfl.base.figures.curves.STYLES``.

        Returns:
            The runs behind each experiment, by name.
        """
        by_name = {name: self.experiments[name] for name in names}
        studies = {n: self.study(e.study, scale, data_dir) for n, e in by_name.items()}
        store = self.store(scale, out, rows)
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            cause = f"out is {out}: {error.strerror}"
            raise ConfigError(f"{cause}. Choose another folder.") from error
        if make:
            planned = [run for study in studies.values() for run in study.planned()]
            store.make(planned, jobs=jobs, ray=ray)
        by_study = {}
        for name, study in studies.items():
            experiment, results = by_name[name], study.results(store)
            by_study[name] = results
            if not study.cases:
                print(f"{name}: no runs are defined at scale {scale}; try --scale paper")
                continue
            text = experiment.table(results) + outdated(results) + not_run(results)
            (out / f"{name}.md").write_text(text, encoding="utf-8")
            print(f"{name}\n\n{text}")
            if experiment.draw is not None and not results.where():
                print("not drawn: no run is stored; --make trains the runs")
            elif experiment.draw is not None:
                with use_style(style):
                    files = save(experiment.draw(results), out, name)
                for file in files:
                    print(f"drawn: {file}")
        return by_study

    def show(self, name: str, out: Path, *, make: bool = False) -> None:
        """Write and print a table that is computed without runs, and draw its figures.

        Args:
            name: a name of ``texts``.
            out: folder for table and figures.
            make: whether to compute its file again first.
        """
        if make and name in self.makers:
            self.makers[name]()
        show(name, self.texts[name](), out, self.pictures.get(name, lambda: None))

    def _ours(self, others: Iterable[str]) -> list[str]:
        """The names that are not those of the paper's figures and tables."""
        names = dict.fromkeys((*self.experiments, *self.texts, *others))
        return [n for n in names if n not in self.printed]

    def main(
        self,
        words: Sequence[str] | None = None,
        others: dict[str, Callable[[argparse.Namespace], None]] | None = None,
    ) -> int:
        """Reproduce one figure or table, or all of them.

        Args:
            words: command-line arguments.
            others: further actions by name; each gets the parsed arguments.
        """
        others = others or {}
        parser = Parser(
            prog=f"python -m experiments.{self.name}",
            description="Draw figures and write tables from the rows of finished runs.",
        )
        parser.add_argument(
            "name",
            help="a figure or table of the paper, such as fig3 or table1, or one of ours: "
            * bool(self.printed)
            + f"{', '.join(self._ours(others))}; all",
        )
        parser.add_argument(
            "--scale",
            choices=SCALES,
            default="small",
            help="size of the runs: smoke (seconds), small (hours), paper (the published setting)",
        )
        parser.add_argument("--data-dir", type=Path, metavar="PATH", help="folder of the data sets")
        parser.add_argument(
            "--out",
            type=Path,
            default=Path("results", self.name),
            metavar="DIR",
            help="folder for tables and figures",
        )
        parser.add_argument(
            "--jobs",
            type=int,
            default=1,
            metavar="N",
            help="concurrent runs, one CPU thread each",
        )
        parser.add_argument("--ray", metavar="ADDRESS", help="Ray cluster to use; local starts one")
        parser.add_argument("--make", action="store_true", help="train missing runs first")
        parser.add_argument(
            "--rows", type=Path, metavar="DIR", help="folder of finished runs (this repository's)"
        )
        parser.add_argument(
            "--style",
            choices=get_args(StyleName),
            default="ieee",
            help="figures for IEEE columns at print size (ieee), or larger (screen)",
        )
        arguments = parser.parse_args(words)

        def act() -> int:
            arguments.name = self.named(arguments.name, others)
            names = list(self.experiments) if arguments.name == "all" else [arguments.name]
            check_writable(arguments.out)
            if arguments.rows is not None:
                check_writable(arguments.rows, "rows")
                if not arguments.make and not arguments.rows.is_dir():
                    raise ConfigError(
                        f"rows is {arguments.rows}: there is no such folder. Give the folder of "
                        "finished runs, or --make to train them."
                    )
            if arguments.name in others:
                with use_style(arguments.style):
                    others[arguments.name](arguments)
                return 0
            if arguments.name in self.texts:
                with use_style(arguments.style):
                    self.show(arguments.name, arguments.out, make=arguments.make)
                return 0
            self.reproduce(
                names,
                arguments.scale,
                arguments.out,
                make=arguments.make,
                rows=arguments.rows,
                data_dir=arguments.data_dir,
                jobs=arguments.jobs,
                ray=arguments.ray,
                style=arguments.style,
            )
            return 0

        return exit_code(act)


def save(drawn: Drawn, out: Path, name: str) -> list[Path]:
    """Save the figures of an experiment into a folder, under its name; returns the files."""
    figures = drawn if isinstance(drawn, Mapping) else {} if drawn is None else {"": drawn}
    pairs = (save_figure(figure, out / f"{name}{end}") for end, figure in figures.items())
    return [file for files in pairs for file in files]


def show(name: str, text: str, out: Path, draw: Callable[[], Drawn] = lambda: None) -> None:
    """Write and print a table, and draw its figures."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    for file in save(draw(), out, name):
        print(f"drawn: {file}")


def exit_code(act: Callable[[], int]) -> int:
    """The exit code of a command: of ``act``, or 2 after an error and 130 after an interrupt."""
    try:
        return act()
    except (ConfigError, DataError, TrainingError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: run the same command again to continue", file=sys.stderr)
        return 130
