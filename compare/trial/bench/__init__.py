"""Measuring timers side by side, and the stored runs that reports read."""
