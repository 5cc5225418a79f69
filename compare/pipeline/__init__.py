"""The stages of the pipeline: ingest, generate, replay, verify, summarise."""
