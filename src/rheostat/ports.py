"""The ports: the few small interfaces through which the loop knows the world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from rheostat.errors import UnreadableRecord
from rheostat.job.allocation import Allocation
from rheostat.job.decision import Decision, Measurement, Phase, Reason, Trial, changes, direction
from rheostat.job.fit import fit_suggestions
from rheostat.job.forecast import Forecast
from rheostat.job.graph import JobSpec
from rheostat.job.observation import Observation
from rheostat.job.record import Intent, Record
from rheostat.job.slo import SLO, Limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

K = TypeVar("K")

Note = Callable[[str], None]
"""Journals the name of a sub-step; called before its effect, and refuses where this controller may not act any more.

An empty name journals nothing and only asks that: for after a wait."""


class Clock(Protocol):
    """Time, passed in. Records and windows have moments of `now`; deadlines and waits go by `monotonic`."""

    def now(self) -> float:
        """Return the present moment: seconds since some fixed one. It may be set back."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    def sleep(self, seconds: float) -> None:
        """Return after this long, at once if it is negative."""


class Engine(Protocol):
    """A running job, level-triggered like a thermostat: say what is wanted, look at what is."""

    def describe(self) -> JobSpec:
        """Say what can be tuned, what is pinned and why."""

    def observe(self) -> Observation:
        """Return the last window; never advances time, never changes anything."""

    def apply(self, intent: Intent, note: Note) -> None:
        """Make `intent.target` the wanted allocation; doing it again with the same id changes nothing.

        `note(step)` is called before each sub-step. Returning means accepted: `observe` shows when it runs.
        """


class RunningJob(Engine, Protocol):
    """An engine with the queries behind it: what a scaler holds."""

    @property
    def name(self) -> str:
        """The job's name, under which it is journaled."""

    @property
    def queries(self) -> tuple[Any, ...]:
        """The queries that run now; a restart replaces them."""

    @property
    def ended(self) -> bool:
        """Whether no query is active, and none is about to be."""

    @property
    def failure(self) -> Exception | None:
        """Why the last change was given up, or why no query is started again."""

    def close(self) -> None:
        """Finish or give up what is being done to the queries, and let go of them; they go on."""


class Testbed(Protocol):
    """A place where an allocation can be tried without touching the running job."""

    def measure(self, trial: Trial) -> Measurement:
        """Run the trial; a trial that cannot be run gives a measurement with a problem."""


class Rig(Protocol):
    """One allocation on a testbed that keeps running while it is fed at one rate after another."""

    @property
    def holds_back(self) -> bool:
        """Whether the injector heeds back pressure, so that nothing piles up while it asks for too much."""

    def play(self, phases: Sequence[Phase]) -> Measurement:
        """Go on with these phases; the measurement covers the observed ones. An injector gives the most it can."""

    def stop(self) -> None:
        """End it; doing it again changes nothing."""


class Forecaster(Protocol):
    """Learns from a regular series of rates, oldest first, and says what comes next."""

    def fit(self, values: Sequence[float]) -> None:
        """Learn; gaps are NaN."""

    def predict(self, steps: int, quantiles: Sequence[float]) -> NDArray[np.float64]:
        """Return steps x quantiles; never negative, never NaN, rising with the quantile."""


@dataclass(frozen=True, slots=True)
class Situation(Generic[K]):
    """Everything that a decision may depend on, and nothing else."""

    spec: JobSpec
    slo: SLO
    limits: Limits
    window: Observation
    knowledge: K
    step: int
    seed: int
    memo: Mapping[str, Any]
    """The memo of the last decision."""
    asked: Allocation | None = None
    """What the policy asked for last."""
    applied: Allocation | None = None
    """What was really applied last."""
    changed_at_s: float | None = None
    """When the last change ended."""
    forecast: Forecast | None = None
    """The load to come, where the loop looks ahead and could."""

    @property
    def running(self) -> Allocation:
        """The allocation that runs now. Policies are only asked when it is known."""
        assert self.window.running is not None
        return self.window.running

    def headroom(self, own: float | None = None, default: float = 0.0) -> float:
        """Return the one over-provisioning factor: the policy's own where it is set, else the SLO's."""
        if own is not None:
            return own
        return default if self.slo.headroom is None else self.slo.headroom

    def fit(self, wanted: Mapping[str, float]) -> Allocation:
        """Return the allowed allocation nearest to these tasks per operator; the others keep their tasks.

        Tasks are rounded up and kept within bounds, quantum, quota and budget.
        """
        asked = {name: wanted.get(name, self.running.tasks[name]) for name in self.spec.tunable_names}
        return self.running.with_tasks(fit_suggestions(self.limits, asked))

    def change_to(self, target: Allocation, because: str = "") -> Decision:
        """Return the decision to run `target`, or to hold where it runs already; `because` becomes its sentence."""
        if target == self.running:
            return Decision.hold(Reason.STEADY, because or "the running size is right")
        what = changes(self.running, target)
        return Decision(target, direction(self.running, target), f"{because}: {what}" if because else what)

    def rng(self) -> np.random.Generator:
        """Return this step's generator: the only randomness a policy may use."""
        import numpy as np

        return np.random.default_rng([self.seed, self.step])


class Policy(Generic[K]):
    """Decides. Pure: same records, same decisions.

    Subclass it as a frozen dataclass and give it a `name` and a `decide`: its fields are its options.
    """

    name: ClassVar[str] = ""
    """The name under which it is known."""
    reads_partial_windows: ClassVar[bool] = False
    """Whether it is asked even when the window is unusable; it must then look at `problem`."""
    reads_former_rates: ClassVar[bool] = False
    """Whether rates per task that were measured before the last change are enough for it (`Observation.former`)."""
    wants_forecast: ClassVar[bool] = False
    """Whether it decides from `Situation.forecast`, which may still be None."""
    factor_option: ClassVar[str] = ""
    """The option that over-provisions, where the policy's paper has one of its own."""

    def options(self) -> Mapping[str, Any]:
        """Return the options it was made with, as JSON values: the dataclass fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def factor(self) -> tuple[str, float | None]:
        """Return the name and value of its own over-provisioning option ("" where it has none)."""
        return self.factor_option, getattr(self, self.factor_option) if self.factor_option else None

    def initial(self) -> K:
        """Return the knowledge before the first record."""
        return None  # type: ignore[return-value]

    def learn(self, knowledge: K, record: Record) -> K:
        """Fold one record into the knowledge, in constant time."""
        return knowledge

    def decide(self, situation: Situation[K]) -> Decision:
        """Return what should run."""
        raise NotImplementedError(f"policy {self.name!r} has no decide")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with its place in the journal."""

    number: int
    step: int
    record: Record


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write one job's records. A higher token has taken over from a lower one."""

    job: str
    holder: str
    token: int


Skip = Callable[[UnreadableRecord], object]
"""Takes the error of a record that is left out."""


class Journal(Protocol):
    """Append-only memory of every job. Only the holder of a job's lease may write about it."""

    def acquire(self, job: str, holder: str, ttl_s: float) -> Lease:
        """Take the job's lease for `ttl_s` by the journal's clock, or raise LeaseRefused; take over an expired one."""

    def append(self, lease: Lease, step: int, records: Sequence[Record]) -> int:
        """Write all records or none, extend the lease, return the last number. LeaseRefused once taken over.

        Another JournalError leaves open whether they were written. What a later `read` or `latest` of this journal does
        not show was not, and will not be.
        """

    def release(self, lease: Lease) -> None:
        """Give the lease back; doing it again, or after it was taken over, changes nothing."""

    def read(self, job: str, after: int = 0, kinds: Sequence[str] = (), skip: Skip | None = None) -> Iterator[Entry]:
        """Return records in order, from a number on, of some kinds or all.

        A record that cannot be read raises UnreadableRecord; with `skip` it is given to that instead, and left out.
        """

    def latest(self, job: str, kind: str, before: int | None = None) -> Entry | None:
        """Return the newest record of a kind, or the newest one before a number; UnreadableRecord as in `read`."""

    def tail(self, job: str, records: int, before: int | None = None) -> int:
        """Return the number after which the last records begin, all or those before a number; 0 for all of them."""

    def prune(self, lease: Lease, before_s: float) -> int:
        """Delete what lies behind the newest snapshot that is older than a moment, except its run. Return how many."""

    def jobs(self) -> tuple[str, ...]:
        """Return the names of all jobs with records."""

    def close(self) -> None:
        """Let go of files and connections."""
