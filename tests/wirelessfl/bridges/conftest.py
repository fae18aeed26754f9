"""Tests of bridges whose packages are not installed are not collected."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("flwr") else ["test_flower.py"]
