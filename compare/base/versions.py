"""The versions of Python and of the packages that compute and store."""

import importlib.metadata
import platform
from functools import cache

DISTRIBUTION = "wheelwork"
_PACKAGES = ("numba", "numpy", "pyarrow", DISTRIBUTION)


def versions() -> dict[str, str | None]:
    """Name -> version; None for a package that is not installed as a distribution."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


@cache
def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
