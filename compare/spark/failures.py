"""Errors and interrupts of Spark, translated: a PipelineError of one line, a KeyboardInterrupt."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from compare.base.files import CANNOT_WRITE
from timers.errors import TimerError


class PipelineError(TimerError, RuntimeError):
    """Spark cannot be started, or a Spark job has failed."""


_EXCEPTION = re.compile(
    r"""(?:Exception in thread "[^"]*" )?(?:[\w.$]+\.)?\w*(?:Error|Exception|Invalid): """
)

_FILE = re.compile(r"Encountered error while reading file (\S+)\. ")
_NO_CONNECTOR = re.compile(r"FileSystem not found|No FileSystem for scheme")
_OURS = re.compile(r"^(?:.*: )?compare\.[\w.]+Error: ", re.MULTILINE)
"""An exception of this package in a worker: its message says all."""


def failure(error: BaseException) -> str:
    """Return why a Spark job failed: the first line of its innermost cause."""
    from py4j.protocol import Py4JJavaError

    if isinstance(error, Py4JJavaError):
        cause, said = error.java_exception, str(error)
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage() or cause.toString())
        if (file := _FILE.search(said)) and file[1] not in text:
            text = f"{file[1]} cannot be read: {text}"
    else:
        text = str(error)
    return reason_in(text or type(error).__name__, last="Traceback (most recent" in text)


def reason_in(text: str, *, last: bool) -> str:
    """The last exception in a text, or else the last line or the first one. Spark may add lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason is known"]
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    reason = _EXCEPTION.sub("", exceptions[-1]) if exceptions else lines[-1 if last else 0]
    return re.sub(r" SQLSTATE: .*", "", reason)


@contextmanager
def plain_failures(
    problem: str,
    known: Mapping[str, Callable[[str], Exception]] | None = None,
    others: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Turn an error of Spark, or one of `others`, into a PipelineError: `problem: reason`.

    If Spark's error contains a text in `known`, the reason is passed to its function instead, and
    the exception that it returns is raised.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, *others) as error:
        reason = failure(error)
        for text, as_error in (known or {}).items():
            if text in str(error):
                raise as_error(reason) from None
        if reason.startswith(CANNOT_WRITE) or _OURS.search(str(error)):
            raise PipelineError(reason) from None
        if "ModuleNotFoundError" in str(error):
            reason += "; this package must be installed on the workers as well"
        if _NO_CONNECTOR.search(reason):
            reason += "; add the connector of this file system to Spark, with spark.jars.packages"
        raise PipelineError(f"{problem}: {reason}") from None


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Make an interrupt a KeyboardInterrupt, and log nothing about it.

    It comes during a call of the JVM, and PySpark then fails in any way.
    """

    def is_not_from_client(record: logging.LogRecord) -> bool:
        return record.module not in ("java_gateway", "clientserver")

    loggers = [logging.getLogger(name) for name in (None, "py4j.java_gateway", "py4j.clientserver")]
    for logger in loggers:
        logger.addFilter(is_not_from_client)
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__context__
        raise
    finally:
        for logger in loggers:
            logger.removeFilter(is_not_from_client)
