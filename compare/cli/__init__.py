"""The `wheelwork` command line."""
