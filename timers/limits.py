"""The range of time. Imports nothing, so that every layer can import it."""

LIMIT = 2**63 - 1
"""The last moment. Deadlines and clocks lie in [0, LIMIT]; no calculation goes beyond it."""
