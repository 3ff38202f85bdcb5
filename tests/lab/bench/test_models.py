"""The bench of the capacity models."""

from __future__ import annotations

import numpy as np

from rheostat.lab.bench.models import COUNTS, OURS, PLACES, errors, known_job, models, significantly_worse, truths
from rheostat.model.registry import MODELS
from rheostat.policy.conttune.policy import ContTune


def test_the_truths_are_streambeds_noisy_operators() -> None:
    names = [name for name, _ in truths()]
    assert len(names) == len(set(names)) == 14
    assert "streambed-q5 window_group" in names


def test_inside_one_sample_every_model_errs_by_its_noise() -> None:
    found = errors(4)
    assert set(found) == {(model, count, place) for model in MODELS for count in COUNTS for place in PLACES}
    alike = [found[model, 1, "inside"] for model in MODELS]
    np.testing.assert_allclose(alike[0], alike[1], atol=1e-5)
    np.testing.assert_allclose(alike[0], alike[2], atol=1e-5)


def test_significance_needs_a_difference() -> None:
    rng = np.random.default_rng(1)
    errors_ = rng.random(200)
    assert significantly_worse(errors_ + 0.2, errors_, rng)
    assert not significantly_worse(errors_, errors_, rng)
    assert not significantly_worse(errors_, errors_ + 0.2, rng)


def test_the_timed_job_knows_what_it_should() -> None:
    situation = known_job(5, 50)
    assert len(situation.spec.tunable) == 5
    assert all(len(situation.knowledge.samples(name)) == 50 for name in situation.spec.tunable_names)
    assert ContTune(big=False).decide(situation).sentence


def test_the_bench_prints_the_table_and_ours_is_best_on_the_mean() -> None:
    found = {measure.measure: measure for measure in models(True, lambda what: None)}
    ours = [m for name, m in found.items() if name.startswith(f"error_{OURS}_")]
    assert len(ours) == len(COUNTS) * len(PLACES)
    assert all(m.met for m in ours if "_5_" in m.measure or "_3_" in m.measure)
    assert found["rows_significantly_worse"].met
    assert {"ms_gp_5", "ms_gp_10", "ms_loglog_5", "ms_loglog_10", "slope_gp", "slope_loglog"} <= set(found)
