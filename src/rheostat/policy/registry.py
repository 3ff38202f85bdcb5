"""Policies by name: the built-in ones, and any Python file with a policy."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rheostat.config.named import Named, label, named
from rheostat.errors import InvalidValue, nearest
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


def policy_class(name: str) -> type[Policy[Any]]:
    """Return the class of a built-in policy, or of the one in a Python file (`steady.py`)."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in POLICIES:
        raise InvalidValue(f"unknown policy {name!r}, {nearest(name, [*POLICIES, 'oracle'])}")
    module, _, cls = POLICIES[name].partition(":")
    policy: type[Policy[Any]] = getattr(importlib.import_module(module), cls)
    return policy


def make_policy(name: str, options: Mapping[str, Any] | None = None) -> Policy[Any]:
    """Make a policy with options; an unknown option or an impossible value raises InvalidValue with its name."""
    from rheostat.config import build

    return build(policy_class(name), options or {}, where=f"policy {name}")


def resolve_policy(policy: str | Mapping[str, Any] | Policy[Any]) -> Policy[Any]:
    """Return the policy of a name with options (`conttune:big=false`) or of a mapping; a Policy as it is."""
    if isinstance(policy, str | Mapping):
        return make_policy(*named(policy, "name", "policy"))
    if not isinstance(policy, Policy):
        raise InvalidValue(f"policy must be a name such as 'ds2', or a rheostat.Policy, not {policy!r}")
    return policy


def _from_file(path: Path) -> type[Policy[Any]]:
    if not path.is_file():
        raise InvalidValue(f"the policy file {str(path)!r} does not exist")
    # The whole path, so that two files with the same name in different folders do not mix.
    spec = importlib.util.spec_from_file_location(f"rheostat_user:{path.resolve()}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look up a class's module there when its annotations are strings.
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module.__name__]
        raise InvalidValue(f"policy file {str(path)!r} cannot be imported: {type(error).__name__}: {error}") from error
    classes = [
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Policy) and member.__module__ == module.__name__ and member.name
    ]
    if len(classes) != 1:
        raise InvalidValue(
            f"policy file {str(path)!r} must define exactly one policy class with a name, not {len(classes)}"
        )
    return classes[0]


def own_factor(policies: Sequence[Named]) -> str:
    """Return the first policy that sets its own over-provisioning factor, in the short form; "" if none does."""
    from rheostat.policy.registry import make_policy

    for name, options in policies:
        if name != "oracle" and make_policy(name, options).factor()[1] is not None:
            return label(name, options)
    return ""
