"""Kubernetes: a real API server, etcd and scheduler, a kubelet that runs pods as processes, the manifests of examples.

`make matrix` runs them, where the control plane has been built (`make kubernetes`, ten minutes of CPU time).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crashing import crash, run_unprotected
from project import ROOT

from rheostat.engine.spark.executors.scheduler import DECOMMISSION
from rheostat.errors import EngineError
from rheostat.lab.clusters.driver import Place, write_whole
from rheostat.lab.clusters.kubernetes.api import Api, ApiError
from rheostat.lab.clusters.kubernetes.cluster import (
    ACCOUNT,
    NAMESPACE,
    RULES,
    Kubernetes,
    is_built,
    kubernetes,
    load_manifests,
    manifests,
)
from rheostat.lab.clusters.sparks import spark_home
from rheostat.lab.clusters.visit import Visitor, count_errors, endings, kill_executor, notice_executor, visit
from rheostat.lab.experiment.processes import Child, await_true, executors_below

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif("RHEOSTAT_CLUSTERS" not in os.environ, reason="takes minutes: `make matrix` runs it"),
    pytest.mark.skipif(not is_built(), reason="Kubernetes is not built: run `make kubernetes` once, which needs Go"),
]
WATCH_PODS = ({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "deletecollection"]},)
ASKS_WHAT_IT_MAY = ("selfsubjectaccessreviews", "create")
"""Needs no rule: every account may ask what it may do, and the session does."""
MANIFEST = ROOT / "examples" / "kubernetes" / "driver.yaml"
APPLICATION = MANIFEST.with_name("spark-application.yaml")
OPERATOR = "github.com/kubeflow/spark-operator/v2@v2.4.0"
OPERATOR_SUM = "h1:Bo5rz5dlhqYEa7e/TLtUEVXDMNRotnVaQ4VLCyeLeOc="


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    with kubernetes(tmp_path_factory.mktemp("kubernetes"), spark_home(None)) as started:
        yield started


@pytest.fixture(autouse=True)
def no_pods_left(cluster: Kubernetes) -> Iterator[None]:
    """Delete what a killed driver has left: nothing else would, and the next test would find it."""
    yield
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for pod in cluster.admin.get(path)["items"]:
        cluster.admin.delete(f"{path}/{pod['metadata']['name']}")
    assert await_true(lambda: not cluster.admin.get(path)["items"], 120.0)


def driver_api(cluster: Kubernetes) -> Api:
    return Api(cluster.admin.url, cluster.driver_token(), cluster.admin.certificate)


def test_executors_in_pods_grow_shrink_and_survive_kills(cluster: Kubernetes, tmp_path: Path) -> None:
    seen = visit(tmp_path / "job", cluster.cluster, None, print)
    assert (seen.rows_lost, seen.rows_repeated) == (0, 0)
    assert any("lost executor" in word for word in seen.words)
    allowed = {(resource, verb) for rule in RULES for resource in rule["resources"] for verb in rule["verbs"]}
    assert cluster.used_verbs() == allowed | {ASKS_WHAT_IT_MAY}


def test_the_api_server_accepts_the_manifests(cluster: Kubernetes) -> None:
    manifests = load_manifests(MANIFEST)
    assert [one["kind"] for one in manifests] == [
        "ServiceAccount", "Role", "RoleBinding", "Service", "Secret", "Pod",
    ]  # fmt: skip
    for manifest in manifests:
        cluster.admin.apply(manifest, NAMESPACE, dry_run=True)


@pytest.mark.skipif(shutil.which("go") is None, reason="the definition of SparkApplication comes by Go's modules")
def test_the_api_server_accepts_the_application_of_the_spark_operator(cluster: Kubernetes) -> None:
    cluster.admin.apply(spark_application_definition())
    path = f"/apis/sparkoperator.k8s.io/v1beta2/namespaces/{NAMESPACE}/sparkapplications"
    assert await_true(lambda: is_served(cluster.admin, path), 60.0)
    [application] = load_manifests(APPLICATION)
    cluster.admin.apply(application, NAMESPACE, dry_run=True)
    mistakes: tuple[dict[str, Any], ...] = ({"dynamicAllocations": {}}, {"restartPolicy": {"type": "Sometimes"}})
    for wrong in mistakes:
        with pytest.raises(ApiError, match=r"unknown field|Unsupported value"):
            cluster.admin.apply({**application, "spec": {**application["spec"], **wrong}}, NAMESPACE, dry_run=True)


def spark_application_definition() -> Mapping[str, Any]:
    """Return the custom resource definition of kubeflow's spark-operator, from Go's module cache."""
    command = ["go", "mod", "download", "-json", OPERATOR]
    done = subprocess.run(command, env={**os.environ, "GOFLAGS": ""}, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    assert answer.get("Sum") == OPERATOR_SUM, answer.get("Error") or answer
    file = Path(answer["Dir"]) / "config" / "crd" / "bases" / "sparkoperator.k8s.io_sparkapplications.yaml"
    [definition] = load_manifests(file)
    return definition


def is_served(api: Api, path: str) -> bool:
    """Whether the API server has begun to serve a new kind."""
    try:
        return bool(api.get(path))
    except ApiError:
        return False


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


def test_a_cluster_without_room_gives_what_it_has_and_surplus_is_removed(cluster: Kubernetes, tmp_path: Path) -> None:
    """Four of six pods have room; the others stay Pending, and take places that the shrink frees.

    Spark deletes pods at a shrink that have been Pending for longer than the idle timeout, 60 s by default.
    """
    before = pods_started(cluster)
    visitor = visitor_on(cluster, tmp_path, 6, **{"spark.dynamicAllocation.executorIdleTimeout": "1h"})
    with visitor.driving():
        visitor.start()
        write_whole(tmp_path / "wanted", "6")
        visitor.wait(lambda: visitor.status.get("executors") == 4, "not 4 executors")
        pods = cluster.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        assert sorted(pod["status"]["phase"] for pod in pods).count("Pending") == 2
        visitor.wait(lambda: bool(endings(tmp_path)), "the change does not end")
        assert endings(tmp_path)[0] == "partial: wanted job=6, got job=4"
        visitor.resize(1)
        visitor.wait(lambda: len(executors_below(os.getpid())) == 1, "surplus stays")
        visitor.pass_batches()
        assert len(executors_below(os.getpid())) == 1
        assert pods_started(cluster) > before + 4, "no Pending pod came up as surplus"
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def pods_started(cluster: Kubernetes) -> int:
    return sum(1 for node in cluster.nodes if node.folder.exists() for _ in node.folder.iterdir())


def test_a_quota_gives_what_it_has(cluster: Kubernetes, tmp_path: Path) -> None:
    """The API server refuses the third pod more than a hundred times: the application goes on with two."""
    visitor = visitor_on(cluster, tmp_path, most=4)
    with quota(cluster, pods=2), visitor.driving():
        visitor.start()
        write_whole(tmp_path / "wanted", "4")
        visitor.wait(lambda: bool(endings(tmp_path)), "the change does not end")
        assert endings(tmp_path)[0] == "partial: wanted job=4, got job=2"
        visitor.wait(lambda: refused_pods(tmp_path) > 105, "no more pods are asked for")
        assert "exceeded quota" in (tmp_path / "driver.log").read_text(errors="replace")
        visitor.pass_batches()
        visitor.resize(1)
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def refused_pods(folder: Path) -> int:
    """Return how many refused pods Spark has counted as failures."""
    return (folder / "driver.log").read_text(errors="replace").count("Failed to create executor pod")


@contextmanager
def quota(cluster: Kubernetes, pods: int) -> Iterator[None]:
    """Allow so many pods in the namespace, from when the controller has counted those that are there."""
    path = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"
    assert await_true(lambda: not cluster.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"], 60.0)
    spec = {"hard": {"pods": str(pods)}}
    cluster.admin.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": spec}, NAMESPACE
    )
    try:
        used = {"hard": {"pods": str(pods)}, "used": {"pods": "0"}}
        assert await_true(lambda: cluster.admin.get(f"{path}/few").get("status") == used, 30.0)
        yield
    finally:
        cluster.admin.delete(f"{path}/few")


def test_an_application_survives_more_crashes_than_spark_allows_by_default(cluster: Kubernetes, tmp_path: Path) -> None:
    visitor = visitor_on(cluster, tmp_path, most=2)
    with visitor.driving():
        visitor.start()
        for _ in range(5):
            kill_executor(visitor, 1)
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def test_without_the_setting_autoscale_refuses_and_spark_ends_the_application(
    cluster: Kubernetes, tmp_path: Path
) -> None:
    place = Place(tmp_path, cluster.cluster.master, cluster.cluster.conf, {}, None, 2)
    with Child(run_unprotected, place) as driver:
        assert await_true((tmp_path / "refusal").exists, 120.0)
        assert "spark.executor.maxNumFailures is not set" in (tmp_path / "refusal").read_text()
        assert crash(driver) >= 3
    assert "Max number of executor failures (3) reached" in (tmp_path / "driver.log").read_text(errors="replace")


def test_a_deleted_pod_is_a_loss_and_is_replaced(cluster: Kubernetes, tmp_path: Path) -> None:
    visitor = visitor_on(cluster, tmp_path, most=2)
    with visitor.driving():
        visitor.start()
        visitor.resize(2)
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        newest = max(cluster.admin.get(path)["items"], key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        cluster.admin.delete(f"{path}/{newest['metadata']['name']}")
        visitor.wait(lambda: "lost" in str(visitor.status.get("problem")), "no loss")
        visitor.wait(lambda: visitor.status["executors"] == 2 and not visitor.status["problem"], "no replacement")
        visitor.pass_batches()
        visitor.stop()
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def test_a_spot_notice_is_no_loss(cluster: Kubernetes, tmp_path: Path) -> None:
    visitor = visitor_on(cluster, tmp_path, 2, **{DECOMMISSION: "true"})
    with visitor.driving():
        visitor.start()
        visitor.resize(2)
        notice_executor(visitor)
        visitor.stop()
    assert not [word for word in visitor.words if "lost" in word]
    assert count_errors(tmp_path / "output", visitor.batch) == (0, 0)


def test_an_account_that_may_not_create_pods_is_named(cluster: Kubernetes, tmp_path: Path) -> None:
    weak = "weak-driver"
    for manifest in manifests(({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}, *WATCH_PODS), weak):
        cluster.admin.apply(manifest)
    token = tmp_path / "token"
    token.write_text(cluster.driver_token(weak))
    conf = {**cluster.cluster.conf, "spark.kubernetes.authenticate.oauthTokenFile": str(token)}
    visitor = Visitor(Place(tmp_path, cluster.cluster.master, conf, {}, None))
    (tmp_path / "wanted").write_text("1")
    with visitor.driving(), pytest.raises(EngineError, match="account may not create, delete pods"):
        visitor.start()


def visitor_on(cluster: Kubernetes, folder: Path, most: int, **conf: str) -> Visitor:
    (folder / "wanted").write_text("1")
    return Visitor(Place(folder, cluster.cluster.master, {**cluster.cluster.conf, **conf}, {}, None, most))
