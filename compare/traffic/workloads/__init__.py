"""Seeded traffic by name: the same operations on every machine."""
