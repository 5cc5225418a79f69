"""The compiled inner loops of the timers: sibling modules of functions on a State of arrays."""
