"""Reaches what a running source does not offer: classes of its own loader, private fields and methods."""

from __future__ import annotations

from typing import Any

from rheostat.errors import EngineError


def class_of(jvm: Any, owner: Any, name: str) -> Any:
    """Return a class as the owner's class loader finds it; without an owner, that of Spark's jars."""
    loader = None if owner is None else owner.getClass().getClassLoader()
    if loader is None:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(name)


def array(gateway: Any, kind: Any, *values: Any) -> Any:
    """Return a Java array."""
    filled = gateway.new_array(kind, len(values))
    for place, value in enumerate(values):
        filled[place] = value
    return filled


def new_instance(gateway: Any, kind: Any, *values: Any) -> Any:
    """Call a class's constructor with this number of parameters."""
    constructor = next(one for one in kind.getDeclaredConstructors() if one.getParameterCount() == len(values))
    constructor.setAccessible(True)
    return constructor.newInstance(array(gateway, gateway.jvm.java.lang.Object, *values))


def read_field(owner: Any, name: str) -> Any:
    """Return the value of a private field."""
    field = owner.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


def method_of(kind: Any, name: str) -> Any:
    """Return a method of a class by its name, private or not."""
    for method in kind.getDeclaredMethods():
        if str(method.getName()) == name:
            method.setAccessible(True)
            return method
    raise EngineError(f"{kind.getName()} has no method {name}: Rheostat does not know this version of Spark")
