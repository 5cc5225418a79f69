"""The stages of the pipeline: generate, replay, verify, summarise."""
