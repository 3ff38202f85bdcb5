"""Kubernetes: a real API server, etcd and scheduler, a kubelet that runs pods as processes, the manifests of examples.

They run where the control plane has been built (`make kubernetes`): that takes ten minutes of CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from project import ROOT

from rheostat.lab.clusters.kubernetes.api import Api, ApiError
from rheostat.lab.clusters.kubernetes.cluster import (
    ACCOUNT,
    NAMESPACE,
    RULES,
    Kubernetes,
    is_built,
    kubernetes,
    load_manifests,
)
from rheostat.lab.clusters.sparks import spark_home
from rheostat.lab.clusters.visit import visit

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not is_built(), reason="Kubernetes is not built: run `make kubernetes` once, which needs Go"),
]
MANIFEST = ROOT / "examples" / "kubernetes" / "driver.yaml"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    with kubernetes(tmp_path_factory.mktemp("kubernetes"), spark_home(None)) as started:
        yield started


def driver_api(cluster: Kubernetes) -> Api:
    return Api(cluster.admin.url, cluster.driver_token(), cluster.admin.certificate)


def test_executors_in_pods_grow_shrink_and_survive_kills(cluster: Kubernetes, tmp_path: Path) -> None:
    seen = visit(tmp_path / "job", cluster.cluster, None, print)
    assert (seen.rows_lost, seen.rows_repeated) == (0, 0)
    assert any("lost executor" in word for word in seen.words)
    allowed = {(resource, verb) for rule in RULES for resource in rule["resources"] for verb in rule["verbs"]}
    assert cluster.used_verbs() == allowed


def test_the_api_server_accepts_the_manifests(cluster: Kubernetes) -> None:
    manifests = load_manifests(MANIFEST)
    assert [one["kind"] for one in manifests] == [
        "ServiceAccount", "Role", "RoleBinding", "Service", "Secret", "Pod",
    ]  # fmt: skip
    for manifest in manifests:
        cluster.admin.apply(manifest, NAMESPACE, dry_run=True)


def test_the_role_of_the_manifests_is_the_one_that_the_tests_run_under() -> None:
    [role] = [one for one in load_manifests(MANIFEST) if one["kind"] == "Role"]
    assert role["rules"] == list(RULES)
    assert role["metadata"]["name"] == ACCOUNT


def test_the_account_may_do_nothing_else(cluster: Kubernetes) -> None:
    driver = driver_api(cluster)
    assert driver.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["kind"] == "PodList"
    for path in (f"/api/v1/namespaces/{NAMESPACE}/secrets", "/api/v1/namespaces/default/pods", "/api/v1/nodes"):
        with pytest.raises(ApiError, match="forbidden"):
            driver.get(path)
