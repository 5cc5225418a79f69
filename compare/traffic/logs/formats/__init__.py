"""The formats of logs, a file each.

A format is a file with a class: how the head of a file is recognized, and a pure function from the
bytes of a block to records. Formats that are lines of text with fields in a known order are rows of
the table in `patterns.py` instead.
"""

from collections.abc import Mapping

from compare.traffic.logs.formats.patterns import LINES

FORMATS: Mapping[str, str] = {
    "zeek": f"{__name__}.zeek:ZeekLog",
    "w3c": f"{__name__}.zeek:W3cLog",
    "jsonl": f"{__name__}.json:JsonLog",
    **dict.fromkeys(LINES, f"{__name__}.lines:LineLog"),
    "ltsv": f"{__name__}.labelled:LtsvLog",
    "logfmt": f"{__name__}.labelled:LogfmtLog",
    "tsv": f"{__name__}.csv:TsvLog",
    "csv": f"{__name__}.csv:CsvLog",
    "parquet": f"{__name__}.parquet:ParquetLog",
}
"""Name -> location of its class, in the order in which they are tried on a file. The command line
needs the names without Arrow, which the classes import."""
