"""Static: a fixed size, applied once. The baseline of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rheostat.errors import InvalidValue, nearest
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Expectation, Reason, changes, direction
from rheostat.job.frozen import FrozenMap, put
from rheostat.ports import Policy, Situation


@dataclass(frozen=True)
class Static(Policy[None]):
    """Keeps the configured tasks at any load; operators that are not named keep their running tasks."""

    name: ClassVar[str] = "static"

    tasks: Mapping[str, int] | None = None
    """Tasks per operator; default: the running allocation."""

    def __post_init__(self) -> None:
        if self.tasks is not None:
            try:
                Allocation(self.tasks)
            except InvalidValue as error:
                raise InvalidValue(f"option tasks of policy 'static': {error}") from error
            put(self, tasks=FrozenMap(self.tasks))

    def decide(self, situation: Situation[None]) -> Decision:
        """Request the configured tasks until they run."""
        configured = self.tasks or {}
        tunable = situation.spec.tunable_names
        for operator in configured:
            if operator not in tunable:
                raise InvalidValue(
                    f"option tasks of policy 'static' names {operator!r}, which cannot be tuned, "
                    f"{nearest(operator, tunable)}"
                )
        expects = Expectation(load_per_s=situation.window.load_per_s)
        if not configured:
            return Decision.hold(Reason.STEADY, f"static: keeps {situation.running}", expects=expects)
        target = situation.fit(configured)
        cut = [f"{name} {count}" for name, count in configured.items() if target.tasks[name] != count]
        note = f"; the limits do not allow {', '.join(cut)}" if cut else ""
        evidence = {f"{name}.chosen_tasks": float(count) for name, count in configured.items()}
        if target == situation.running:
            sentence = f"static: {target} runs as configured{note}"
            return Decision.hold(Reason.STEADY, sentence, evidence=evidence, expects=expects)
        sentence = f"static: {changes(situation.running, target)}, as configured{note}"
        return Decision(target, direction(situation.running, target), sentence, evidence, expects)
