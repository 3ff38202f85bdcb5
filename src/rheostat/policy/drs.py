"""DRS: sizes a job by queueing theory until its expected latency meets the target.

Fu, Ding, Ma, Winslett, Yang, Zhang: "DRS: Auto-scaling for real-time stream analytics", ToN 2017; AuTraScale+'s
baseline for processing latency, with observed or with true rates (TPDS 2024, section V-C).

| paper | here |
|---|---|
| λ_i, arrival rate | `demand` |
| μ_i, service rate of a processor | `rates`: the true rate of a task, or its observed throughput |
| E[T_i](k_i) of an M/M/k queue | `sojourn_s`, Erlang's C formula |
| E[T] = Σ λ_i E[T_i] / λ_0 | `expected_s`, an open Jackson network |
| greedy minimal allocation | `smallest_network`: repeatedly the processor that saves most latency |

It continues until the latency meets the target, as in AuTraScale+'s comparison, or until it suggests the running size.
The observed rate of a task includes its waiting time, so every task seems full, and the policy requests more and more.

The network knows queues, and no other part of a latency. AuTraScale+'s comparison has DRS run "until the
processing-time latency meets the requirements or the total number of parallelisms in the new configuration exceeds the
upper limit", and does not say how it goes on where its own expectation is met already. `calibrate` is our reading: the
target of the network falls by the ratio of the expected latency to the measured one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rheostat.job.decision import Decision, Reason, changes, direction
from rheostat.job.fit import MOST_TASKS
from rheostat.job.frozen import check_number
from rheostat.model.experience import keeps_up
from rheostat.policy.demand import demand
from rheostat.policy.explanation import rate, sustains
from rheostat.policy.tuning import has_moved
from rheostat.ports import Policy, Situation

TRIGGER = 0.05
"""Share by which a demand must move for the size to be computed again although the target is met."""
LEAST_GAIN = 1e-4
"""Saving of a further processor, as a share of the target, below which the search ends."""
WIDE = 10_000
"""Servers above which a queue that is not full has no waiting time."""


@dataclass(frozen=True)
class DRS(Policy[None]):
    """Gives every operator the tasks with which an open queueing network meets the latency target."""

    name: ClassVar[str] = "drs"

    rates: Literal["true", "observed"] = "true"
    """Service rate of a task: records per useful second, or its observed throughput."""
    processing_s: float | None = None
    """Largest processing latency, in seconds; default: the SLO's max_latency_s."""
    calibrate: bool = False
    """Whether the network's target falls by the ratio of the expected latency to the measured one."""

    def __post_init__(self) -> None:
        check_number("processing_s of policy 'drs'", self.processing_s, least=1e-6)

    def decide(self, situation: Situation[None]) -> Decision:
        """Hold while the target is met; else size the network again."""
        window, running = situation.window, situation.running
        target_s, load = self.processing_s or situation.slo.max_latency_s, window.load_per_s
        now_s = window.latency.p50_s if window.latency else None
        needed = demand(situation)
        before = situation.memo.get("demand")
        begun = before is not None and not has_moved(before, needed, TRIGGER)
        memo = {"demand": before if begun else needed}
        # The initial size belongs to another rate: it is computed at least once, whatever its latency.
        if begun and keeps_up(window) and target_s is not None and now_s is not None and now_s <= target_s:
            sentence = f"drs: processing latency is {1e3 * now_s:.0f} ms, the target {1e3 * target_s:g} ms"
            return Decision.hold(Reason.STEADY, sentence, expects=sustains(load), memo=memo)
        served = {name: self._rate(situation, name) for name in running.tasks}
        network = {n: (needed[n], mu) for n, mu in served.items() if mu and needed[n] > 0}
        most = {n: _most(situation, n) for n in network}
        aim_s = target_s
        if self.calibrate and target_s is not None and now_s:
            here_s = expected_s(network, running.tasks, load or 0.0)
            aim_s = target_s * min(here_s / now_s, 1.0)
        wanted = smallest_network(network, load or 0.0, aim_s, most)
        target = situation.fit(wanted)
        expected = expected_s(network, {**wanted}, load or 0.0)
        evidence = {"expected_s": expected} | {f"{name}.served_per_s": mu for name, (_, mu) in network.items()}
        because = f"{rate(load)} arrive and the {self.rates} rates give {1e3 * min(expected, 1e6):.3g} ms"
        if target == running:
            met = keeps_up(window) and (target_s is None or now_s is None or now_s <= target_s)
            reason = Reason.STEADY if met else Reason.UNDER_PROVISIONED
            return Decision.hold(reason, f"drs: {because}; nothing changes", evidence=evidence, memo=memo)
        sentence = f"drs: {changes(running, target)}, because {because}"
        return Decision(target, direction(running, target), sentence, evidence, sustains(load), memo)

    def _rate(self, situation: Situation[Any], name: str) -> float:
        reading = situation.window.operator(name)
        if self.rates == "true":
            return reading.true_rate_per_s or 0.0
        return (reading.records_in_per_s or 0.0) / max(reading.tasks, 1)


def sojourn_s(arrive_per_s: float, serve_per_s: float, servers: int) -> float:
    """Return the expected sojourn time in an M/M/k queue, waiting and service; infinite if it is full."""
    offered = arrive_per_s / serve_per_s
    if offered >= servers:
        return math.inf
    if servers > WIDE:
        return 1.0 / serve_per_s
    blocked = 1.0  # Erlang's B by recursion, then his C
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    waits = blocked / (1.0 - offered / servers * (1.0 - blocked))
    return 1.0 / serve_per_s + waits / (servers * serve_per_s - arrive_per_s)


def expected_s(network: Mapping[str, tuple[float, float]], servers: Mapping[str, float], load_per_s: float) -> float:
    """Return the expected latency of a record through the network."""
    if load_per_s <= 0:
        return 0.0
    return sum(lam * sojourn_s(lam, mu, int(servers[name])) for name, (lam, mu) in network.items()) / load_per_s


def smallest_network(
    network: Mapping[str, tuple[float, float]], load_per_s: float, target_s: float | None, most: Mapping[str, int]
) -> dict[str, float]:
    """Return the fewest servers that meet the target: those that keep up, then one more where it saves most."""
    servers = {}
    for name, (lam, mu) in network.items():
        servers[name] = min(math.floor(min(lam / mu, MOST_TASKS)) + 1, most[name])
    while target_s is not None and expected_s(network, servers, load_per_s) > target_s:
        gains = {}
        for name, (lam, mu) in network.items():
            if servers[name] < most[name]:
                now, then = sojourn_s(lam, mu, servers[name]), sojourn_s(lam, mu, servers[name] + 1)
                gains[name] = math.inf if math.isinf(now) else lam * (now - then)
        best = max(gains, key=lambda name: gains[name], default="")
        if not best or gains[best] <= LEAST_GAIN * target_s * load_per_s:
            break
        if math.isinf(gains[best]):
            # A full queue stays full until it has enough servers: there is no latency to compare before that.
            lam, mu = network[best]
            servers[best] = max(servers[best] + 1, min(math.floor(min(lam / mu, MOST_TASKS)) + 1, most[best]))
            if servers[best] >= most[best] and math.isinf(sojourn_s(lam, mu, servers[best])):
                break
        else:
            servers[best] += 1
    return {name: float(count) for name, count in servers.items()}


def _most(situation: Situation[Any], name: str) -> int:
    return situation.limits.operators[name].max or situation.limits.slots.max or MOST_TASKS
