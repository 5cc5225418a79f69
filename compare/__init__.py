"""Traces, workloads, replay, oracles, measurements, the pipeline and the command line.

The functions and classes that programs use can be imported from here, whatever module they are in:

>>> from compare import contestant, make, replay
>>> made = make("uniform", timers=100)
>>> timer = contestant("cascading-wheel").new(made.unit)
>>> replay(timer, made.tape, made.id_space).outcome.fired
100

`__init__.pyi` lists them. A module is loaded when one of its names is first used, so importing
`compare` loads neither Numba nor PySpark.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
