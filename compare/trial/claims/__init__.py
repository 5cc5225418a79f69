"""Claims about timers that are often repeated, each with an experiment and a verdict."""
