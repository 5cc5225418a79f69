"""Charts, tables and one self-contained page from stored runs and replayed results."""
