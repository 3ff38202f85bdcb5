"""Policies by name: the built-in ones, and any Python file with a policy."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from rheostat.config.named import Named, label, named
from rheostat.errors import InvalidValue, nearest
from rheostat.job.record import PolicyFile
from rheostat.ports import Policy

POLICIES: Mapping[str, str] = {
    "static": "rheostat.policy.static:Static",
    "ds2": "rheostat.policy.ds2:DS2",
    "dhalion": "rheostat.policy.dhalion:Dhalion",
    "conttune": "rheostat.policy.conttune.policy:ContTune",
    "big-ds2": "rheostat.policy.conttune.big_ds2:BigDS2",
    "dragster": "rheostat.policy.dragster.policy:Dragster",
    "hpa": "rheostat.policy.hpa:HPA",
    "autrascale": "rheostat.policy.autrascale.policy:AuTraScale",
    "drs": "rheostat.policy.drs:DRS",
    "max": "rheostat.policy.max_tasks:MaxTasks",
    "proportion": "rheostat.policy.proportion:Proportion",
    "exponent": "rheostat.policy.exponent:Exponent",
    "phoebe": "rheostat.policy.phoebe.policy:Phoebe",
    "twres": "rheostat.policy.phoebe.twres:TWRES",
    "anticipate": "rheostat.policy.phoebe.anticipate:Anticipate",
    "trigger-interval": "rheostat.policy.trigger_interval:TriggerInterval",
}
"""Name -> module:class, imported on demand. The oracle needs the true curves, so the lab makes it."""
LOADED: WeakKeyDictionary[type[Policy[Any]], PolicyFile] = WeakKeyDictionary()
"""Class of a policy -> the file that it was loaded from."""


def policy_class(name: str) -> type[Policy[Any]]:
    """Return the class of a built-in policy, or of the one in a Python file (`steady.py`)."""
    if name.endswith(".py"):
        return PolicySource.read(name).load()
    if name not in POLICIES:
        raise InvalidValue(f"unknown policy {name!r}, {nearest(name, [*POLICIES, 'oracle'])}")
    module, _, cls = POLICIES[name].partition(":")
    policy: type[Policy[Any]] = getattr(importlib.import_module(module), cls)
    return policy


def make_policy(name: str, options: Mapping[str, Any] | None = None) -> Policy[Any]:
    """Make a policy with options; an unknown option or an impossible value raises InvalidValue with its name."""
    return build_policy(policy_class(name), name, options)


def build_policy(cls: type[Policy[Any]], name: str, options: Mapping[str, Any] | None = None) -> Policy[Any]:
    """Make a policy of this class; see `make_policy`."""
    from rheostat.config import build

    return build(cls, options or {}, where=f"policy {name}")


def resolve_policy(policy: str | Mapping[str, Any] | Policy[Any]) -> Policy[Any]:
    """Return the policy of a name with options (`conttune:big=false`) or of a mapping; a Policy as it is."""
    if isinstance(policy, str | Mapping):
        return make_policy(*named(policy, "name", "policy"))
    if not isinstance(policy, Policy):
        raise InvalidValue(f"policy must be a name such as 'ds2', or a rheostat.Policy, not {policy!r}")
    return policy


def file_of(policy: Policy[Any]) -> PolicyFile | None:
    """Return the file that a policy was loaded from by its path; None for any other policy."""
    return LOADED.get(type(policy))


@dataclass(frozen=True, slots=True)
class PolicySource:
    """A policy file as it was read once: what is hashed is what is run."""

    file: PolicyFile
    code: bytes

    @staticmethod
    def read(path: str) -> PolicySource:
        """Read a policy file without running it."""
        try:
            code = Path(path).read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            raise InvalidValue(f"the policy file {path!r} does not exist") from None
        except OSError as error:
            raise InvalidValue(f"the policy file {path!r} cannot be read: {error.strerror}") from error
        return PolicySource(PolicyFile(path, sha256(code).hexdigest()), code)

    def load(self) -> type[Policy[Any]]:
        """Run the file, and return the policy that it defines."""
        path = self.file.path
        # The whole path, so that two files with the same name in different folders do not mix.
        module = ModuleType(f"rheostat_user:{Path(path).resolve()}")
        module.__file__ = path
        # Dataclasses and pydantic look up a class's module there when its annotations are strings.
        sys.modules[module.__name__] = module
        try:
            # Not by an import, which would read the file again, or byte code from __pycache__ instead.
            exec(compile(self.code, path, "exec"), vars(module))
        except Exception as error:
            del sys.modules[module.__name__]
            raise InvalidValue(f"policy file {path!r} cannot be imported: {type(error).__name__}: {error}") from error
        classes = [
            member
            for _, member in inspect.getmembers(module, inspect.isclass)
            if issubclass(member, Policy) and member.__module__ == module.__name__ and member.name
        ]
        if len(classes) != 1:
            raise InvalidValue(
                f"policy file {path!r} must define exactly one policy class with a name, not {len(classes)}"
            )
        LOADED[classes[0]] = self.file
        return classes[0]


def own_factor(policies: Sequence[Named]) -> str:
    """Return the first policy that sets its own over-provisioning factor, in the short form; "" if none does."""
    from rheostat.policy.registry import make_policy

    for name, options in policies:
        if name != "oracle" and make_policy(name, options).factor()[1] is not None:
            return label(name, options)
    return ""
