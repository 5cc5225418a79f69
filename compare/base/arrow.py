"""Arrow without pandas."""

import sys
from importlib.abc import MetaPathFinder


class _Absent(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        """Raise ImportError for pandas."""
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is left out", name=name)


def leave_out_pandas() -> None:
    """Let Arrow do without pandas in this process, for a command that has no use for it.

    Otherwise the first array, of whatever, imports pandas if it is installed, which takes longer
    than a short log. Arrow looks once, and again only where it must have pandas, as in `to_pandas`.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(absent)
