"""Timer operations: tapes, workloads, logs and recordings of programs."""
