"""Advice from a trace: a search for the best timer and its parameters within given bounds."""
