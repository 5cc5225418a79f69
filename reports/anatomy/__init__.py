"""Drawings of the contents of a timer's structure, and of the changes from moment to moment.

A drawing follows from the parts of a `timers.snapshot.Snapshot`, not from the timer's name.
"""
