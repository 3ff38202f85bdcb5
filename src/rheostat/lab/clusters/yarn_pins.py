"""SHA-256 of every jar that a YARN mini cluster needs beside PySpark's."""

from __future__ import annotations

from collections.abc import Mapping

SHA256: Mapping[str, str] = {
    "cluster/apiguardian-api-1.1.2.jar": "b509448ac506d607319f182537f0b35d71007582ec741832a1f111e5b5b70b38",
    "cluster/assertj-core-3.25.3.jar": "7fbdffa1996d43cc08e2576e01008b07e57bbad2b4741aa6c3ab73ce8511130e",
    "cluster/bcpkix-jdk18on-1.78.1.jar": "4b48ea084e5232b9d79ebca1887b9de037b124931807cd60710748c2aee08cc9",
    "cluster/bcprov-jdk18on-1.78.1.jar": "add5915e6acfc6ab5836e1fd8a5e21c6488536a8c1f21f386eeb3bf280b702d7",
    "cluster/bcutil-jdk18on-1.78.1.jar": "d9fa56f97b0f761ce3bc8d9d74c5d7137a987bf5bd3abfe1003f9bafa45a1d2f",
    "cluster/hadoop-client-minicluster-3.5.0.jar": "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    "cluster/hamcrest-core-1.3.jar": "66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9",
    "cluster/junit-4.13.2.jar": "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3",
    "cluster/junit-jupiter-api-5.10.2.jar": "afff77c186cd317275803872fa5133aa801fd6ac40bd91c78a6cf8009b4b17cc",
    "cluster/junit-platform-commons-1.10.2.jar": "b56a5ec000a479df4973b18bba24c98fe0db8faa14c8907d3ef451d8c71fd8ae",
    "cluster/opentest4j-1.3.0.jar": "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",
}
