"""Traces, workloads, replay, oracles, measurements, the pipeline and the command line."""
