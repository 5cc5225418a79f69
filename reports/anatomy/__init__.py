"""Drawings of what a timer's structure holds, and of what changes from moment to moment.

What is drawn follows from the parts of a `timers.snapshot.Snapshot`, not from the timer's name.
"""
