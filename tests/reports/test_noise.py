"""The noise of a run, and when its machine counts as busy."""

import pytest

from compare.cli import printing
from reports.noise import noise_of
from reports.statistics import Estimate


def times(*scatters, samples=2):
    """Measurements whose slowest samples exceed the fastest by these factors."""
    scattered = [Estimate.of([10.0, *[10.0 * by] * (samples - 1)]) for by in scatters]
    return [*scattered, Estimate.of([10.0])]  # the last cannot scatter


def noise(*scatters, cpu=None, samples=2):
    manifest = {} if cpu is None else {"seconds": {"wall": 10.0, "cpu": cpu}}
    return noise_of(times(*scatters, samples=samples), manifest)


def test_the_score_is_that_of_the_median_measurement():
    assert noise(1.4, 1.02, 1.1).score == pytest.approx(0.1)
    said = "Noise 10%: typically, the slowest sample took 10% longer than the fastest."
    assert noise(1.4, 1.02, 1.1).text.startswith(said)
    assert noise(1.6, samples=1).score is None
    assert noise(1.6, samples=1).text == "Noise unknown: each measurement has only one sample."


def test_a_busy_machine_is_said():
    said = noise(1.6, 1.4).text
    assert "In 1 of 2\xa0measurements the slowest sample took more than 1.5 times" in said
    assert "do not rely on small differences" in said
    assert not noise(1.4, 1.4).reasons
    assert noise(1.6, *[1.0] * 18).reasons and not noise(1.6, *[1.0] * 19).reasons


def test_a_run_that_waited_for_a_processor_says_so():
    waited = noise(1.0, cpu=7.0)
    assert "The run had a processor 70% of the time. The machine was busy:" in waited.text
    assert waited.plain() == {"score": 0.0, "processor_share": 0.7, "busy": True}
    assert noise(1.0, cpu=9.0).plain() == {"score": 0.0, "processor_share": 0.9, "busy": False}
    assert not noise(1.0, cpu=8.1).reasons


def test_shards_have_no_noise_and_every_output_begins_with_it(distinct):
    from dataclasses import replace

    from compare.cli.commands.compare import sheets_of

    assert distinct.noise.score is not None
    assert replace(distinct, of_shards=True).noise.text == ""
    first = sheets_of(distinct)[0]
    assert first == printing.noise_sheets(distinct.noise)[0] and first.notes[0].startswith("Noise ")
