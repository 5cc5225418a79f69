"""Recording the timers that a live Python program sets as a trace."""

from compare.traffic.recording.events import finish
from compare.traffic.recording.run import RecordingError, record, record_program

__all__ = ["RecordingError", "finish", "record", "record_program"]
