"""SHA-256 of the jars of table formats."""

# ruff: noqa: E501 - a hash has one line

from __future__ import annotations

from collections.abc import Mapping

SHA256: Mapping[str, str] = {
    "table/delta-spark_2.13-4.0.0.jar": "538511702aae0ef6973a6a70af3d4543c9009f8edbed786a00737e2d3cd7f04e",
    "table/delta-storage-4.0.0.jar": "9bdb9fb450f1e119eba53feb427f331b0d09072d26485b8273883ad72c9a2e1d",
    "table/iceberg-spark-runtime-4.0_2.13-1.10.1.jar": "2192a0881ed0f5773b5a83a8820d2b0b2069beec203028643a1c338551007f09",
}
