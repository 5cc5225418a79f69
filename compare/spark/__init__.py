"""Spark sessions, tasks and progress, with a Java runtime where the machine has none."""
