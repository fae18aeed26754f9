"""A new kind of choice is one line in ``Choices``, besides its own package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wirelessfl.config import Config
from wirelessfl.runs.folder.identity import settings_hash

pytestmark = pytest.mark.thorough

PACKAGE = """
from wirelessfl.base.needs import CHANNEL
from wirelessfl.base.registry import Kind
from weather.models import Weather

WEATHERS = Kind("weather", __name__, Weather, default="dry", needs=(CHANNEL,),
                text="the weather", heading="network")
"""
MODELS = """
from dataclasses import dataclass
from typing import Annotated
from pydantic import Field
from wirelessfl.base.registry import Choice


@dataclass(frozen=True)
class Weather(Choice):
    name = ""


@dataclass(frozen=True)
class Dry(Weather):
    name = "dry"


@dataclass(frozen=True)
class Rain(Weather):
    name = "rain"
    rain_mm: Annotated[float, Field(gt=0, description="rain per hour, mm")] = 4.0
"""
SCRIPT = '''
"""Runs with a line more in Choices, and prints what has become of the new kind."""
import importlib.util, io, json, sys
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path

NAME, FILE = "wirelessfl.config.choices", sys.argv[1]
LINE = "    assigner: Annotated[Assigner | None, ASSIGNERS] = None\\n"
NEW = "    weather: Annotated[Weather | None, WEATHERS] = None\\n"


class Loader(SourceFileLoader):
    def get_code(self, fullname):
        text = Path(FILE).read_text()
        assert text.count(LINE) == 1
        text = text.replace("from typing", "from weather import WEATHERS, Weather\\nfrom typing")
        return compile(text.replace(LINE, LINE + NEW), FILE, "exec")


class Finder:
    def find_spec(self, name, path, target=None):
        if name == NAME:
            return importlib.util.spec_from_file_location(name, FILE, loader=Loader(name, FILE))


sys.meta_path.insert(0, Finder())
import wirelessfl
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.folder.identity import settings_hash

small = {"clients": 2, "rounds": 1, "local_steps": 1, "threads": 1, "out": "run"}
result = wirelessfl.run(Config.from_flags("fedavg", weather="rain", rain_mm=9, **small))
stored = Config.from_toml(Path("run/config.toml"))
help = io.StringIO()
with redirect_stdout(help):
    try:
        main(["run", "fedavg", "--weather", "rain", "--help"])
    except SystemExit:
        pass
errors = []
for flags in ({"weather": "snow"}, {"rain_mm": 2}, {"weather": "rain", "rain_mm": -1},
              {"weather": "rain", "uplink": "fixed"}):
    try:
        Config.from_flags("fedavg", **flags)
    except wirelessfl.ConfigError as error:
        errors.append(str(error))
plain, wet = Config.from_flags("fedavg"), Config.from_flags("fedavg", weather="rain")
print(json.dumps({
    "weather": repr(result.config.weather),
    "stored": stored.weather == result.config.weather and "[weather]" in stored.to_toml(),
    "resumed": len(wirelessfl.resume(Path("run")).rows),
    "plain": repr(plain.weather),
    "hashes": [settings_hash(plain), settings_hash(wet)],
    "help": help.getvalue(),
    "errors": errors,
}))
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the script prints."""
    folder = tmp_path_factory.mktemp("new kind")
    (folder / "weather").mkdir()
    (folder / "weather" / "__init__.py").write_text(PACKAGE)
    (folder / "weather" / "models.py").write_text(MODELS)
    (folder / "script.py").write_text(SCRIPT)
    file = Path(sys.modules["wirelessfl.config.choices"].__file__)
    words = [sys.executable, "script.py", str(file)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_is_a_setting_of_runs(found):
    """It is chosen by name or by default, stored, and read again."""
    assert (found["weather"], found["plain"]) == ("Rain(rain_mm=9.0)", "Dry()")
    assert found["stored"]
    assert found["resumed"] == 2


def test_runs_without_it_keep_their_hash(found):
    plain, wet = found["hashes"]
    assert plain == settings_hash(Config.from_flags("fedavg")) != wet


def test_help_and_errors_know_it(found):
    assert "--weather NAME" in found["help"]
    assert "the weather: dry, rain" in " ".join(found["help"].split())
    assert "rain per hour, mm" in found["help"]
    unknown, elsewhere, negative, useless = found["errors"]
    assert unknown.startswith("weather 'snow' is unknown.")
    assert 'rain_mm=2 is a setting of weather "rain", and weather is "dry": choose' in elsewhere
    assert "rain_mm is -1" in negative
    assert "weather='rain' conflicts with uplink \"fixed\", which has no radio channel" in useless
