"""Timers under traffic: replay, oracle, measurement, advice and the pipeline."""
