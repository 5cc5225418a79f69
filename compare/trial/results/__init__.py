"""The table of results, the registry of its metrics, and the folders that hold it."""
