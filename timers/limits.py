"""The range of time. Imports nothing, so that every layer can take the limit from here."""

LIMIT = 2**63 - 1
"""The last moment: deadlines and clocks lie in [0, LIMIT], and nothing is computed beyond it."""
