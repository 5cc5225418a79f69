"""Spark sessions, and an executor that runs work as Spark tasks."""
