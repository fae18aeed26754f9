"""Helpers shared by the FedAST figures: compared cases, and their targets in words."""

from __future__ import annotations

from typing import Literal

from experiments.fedast.tables import CaseFilter, against_static, fastest
from experiments.fedast.tasks import SHOWN, Goal, kind_of, names, target
from experiments.studies import Case, Results

Quantity = Literal["accuracy", "loss"]


def compared(results: Results, case_filter: CaseFilter) -> list[Case]:
    """FedAST (D) and its reference: the fastest Sync-ST, or FedAST (S)."""
    cases = [case for case in results.where() if case_filter(case)]
    dynamic = [case for case in cases if case["option"] == "D"]
    others = [case for case in cases if case["option"] != "D"]
    if case_filter is not against_static:
        others = [case for case in others if case["first"] != 0]
    return dynamic[:1] + ([fastest(results, others)] if others else [])


def targets(case: Case, goal: Goal = None) -> str:
    """The targets of a case's tasks, as in ``targets: MNIST 93 %, Fashion-MNIST 82 %``."""
    goals = {SHOWN[kind_of(name)]: target(case, name, goal) for name in names(case)}
    each = {kind: f"{100 * accuracy:.0f} %" for kind, accuracy in goals.items()}
    said = ", ".join(f"{kind} {text}" for kind, text in each.items())
    return f"target{'s' if len(each) > 1 else ''}: {said}"
