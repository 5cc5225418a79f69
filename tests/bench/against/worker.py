"""One side of the gate: a process that performs operations of one commit.

    python -m against.worker        (in the folder above)

Reads a request a line from standard input and answers each with a line of JSON. It imports the
table from here, and the project from the environment that runs it.

    where                       the folder that `timers` is imported from
    open NAME [TAB] SIZE        prepares an operation
    turn COUNT                  performs it so many times: its CPU time and its duration, in seconds
    close                       cleans up
"""

import gc
import json
import os
import sys
import time

from .row import AbsentError, resolve
from .table import ROWS


class Worker:
    """Answers requests about one operation at a time."""

    def __init__(self):
        self._rows = {row.name: row for row in ROWS}
        self._case = None

    def where(self):
        """Where the project is imported from."""
        import timers

        return {"where": timers.__file__}

    def open(self, name_and_size):
        """Prepare an operation beside `size` others."""
        name, size = name_and_size.split("\t")
        row = self._rows[name]
        self._case = row.case(int(size), *map(resolve, row.imports))
        self._turn = next(self._case)
        gc.collect()
        gc.freeze()  # what is pending is not looked at again and again between two turns
        return {}

    def turn(self, count):
        """Perform the operation; the garbage collector waits, as for `timeit`."""
        gc.disable()
        start = time.perf_counter()
        used = self._turn(int(count))
        duration = time.perf_counter() - start
        gc.enable()
        gc.collect()
        return {"cpu": used, "duration": duration}

    def close(self):
        """Clean up."""
        case, self._case, self._turn = self._case, None, None
        case.close()
        gc.unfreeze()  # `open` collects what is left
        return {}


def answer(worker, line):
    """The answer to a request; an error of the operation is one."""
    request, _, argument = line.partition(" ")
    try:
        return getattr(worker, request)(*[argument] * bool(argument))
    except AbsentError as error:
        return {"absent": str(error)}
    except Exception as error:
        text = " ".join(str(error).split())
        return {"error": f"{type(error).__name__}: {text}" if text else type(error).__name__}


def main():
    """Answer until the input ends. What operations print is not an answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker()
    for line in sys.stdin:
        print(json.dumps(answer(worker, line.rstrip("\n"))), file=answers, flush=True)


if __name__ == "__main__":
    main()
