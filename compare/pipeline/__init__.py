"""The stages that run on Spark: ingest, generate, replay, verify, summarise."""
