"""Requests to a Kubernetes API server, by the standard library alone."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MERGE = "application/strategic-merge-patch+json"
KINDS: Mapping[str, str] = {
    "Namespace": "namespaces",
    "Node": "nodes",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Pod": "pods",
    "Secret": "secrets",
    "Service": "services",
    "ConfigMap": "configmaps",
    "ResourceQuota": "resourcequotas",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "CustomResourceDefinition": "customresourcedefinitions",
    "SparkApplication": "sparkapplications",
}
"""Kind of an object -> its name in a path."""
CLUSTER_WIDE = frozenset({"Namespace", "Node", "CustomResourceDefinition"})
CHECKED = "?dryRun=All&fieldValidation=Strict"
"""Has an object checked and not stored; a field that its kind does not have is an error, and not dropped."""


class ApiError(Exception):
    """The API server's refusal, with its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Api:
    """An API server and one identity."""

    url: str
    token: str
    certificate: Path

    def get(self, path: str) -> Any:
        """Read an object or a list."""
        return self._json("GET", path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create an object."""
        return self._json("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any], kind: str = MERGE) -> Any:
        """Change a part of an object."""
        return self._json("PATCH", path, body, kind)

    def delete(self, path: str, grace_s: int | None = None) -> None:
        """Delete an object; one that is gone already is no error."""
        body = {} if grace_s is None else {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace_s}
        try:
            self._json("DELETE", path, body)
        except ApiError as error:
            if error.code != 404:
                raise

    def apply(self, manifest: Mapping[str, Any], namespace: str = "default", *, dry_run: bool = False) -> Any:
        """Create an object of a manifest; one that exists stays as it is. A dry run only has it checked."""
        kind = str(manifest["kind"])
        version = str(manifest["apiVersion"])
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        inside = "" if kind in CLUSTER_WIDE else f"/namespaces/{manifest['metadata'].get('namespace', namespace)}"
        try:
            return self.post(f"{root}{inside}/{KINDS[kind]}{CHECKED if dry_run else ''}", manifest)
        except ApiError as error:
            if error.code != 409:
                raise
            return None

    def watch(self, path: str, timeout_s: int) -> Iterator[tuple[str, Any]]:
        """Yield changes of a list, as they come, for a while; each is a type and an object."""
        with self._open("GET", f"{path}&watch=true&timeoutSeconds={timeout_s}", None, "", timeout_s + 10) as lines:
            for line in lines:
                event = json.loads(line)
                yield event["type"], event["object"]

    def _json(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "application/json"
    ) -> Any:
        with self._open(method, path, body, kind, 15) as answer:
            return json.load(answer)

    def _open(self, method: str, path: str, body: Mapping[str, Any] | None, kind: str, timeout_s: float) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", **({"Content-Type": kind} if body is not None else {})},
        )
        context = ssl.create_default_context(cafile=str(self.certificate))
        try:
            return urllib.request.urlopen(request, timeout=timeout_s, context=context)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                message = str(json.loads(text).get("message", text))
            except ValueError:
                message = text
            raise ApiError(error.code, message) from None
