"""Timers of any language as programs that replay tapes: protocol, check, times and adapters."""
