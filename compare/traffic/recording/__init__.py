"""Recording the timers that a live program sets as a trace."""

from compare.traffic.recording.agent import jvm_option
from compare.traffic.recording.events import finish
from compare.traffic.recording.run import RecordingError, record, record_program

__all__ = ["RecordingError", "finish", "jvm_option", "record", "record_program"]
