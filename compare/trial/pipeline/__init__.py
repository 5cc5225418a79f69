"""The stages of the pipeline: generate, replay, verify, summarise."""

import lazy_loader  # type: ignore[import-untyped]  # it has no types

# So that `compare.dataframes` is found without importing it, and PySpark, before it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules={"dataframes"})
