"""Recordings of timer operations: traces on disk, tapes in memory, units of time."""
