"""An int64 array seen as 32-bit words, for numbers that are packed two to a cell."""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array


def words_of(cells):
    """Return the same memory as uint32, twice as long."""
    return cells.view(np.uint32)


# Numba's own `view` compares item sizes at run time, and an overload may not return a new array.
# Never with an overload that has inline="always" in one function: Numba then takes what is written
# to the words for dead code.
@type_callable(words_of)
def _type_of_words(context):
    return lambda cells: types.Array(types.uint32, 1, "C")


@lower_builtin(words_of, types.Array)
def _words_of(context, builder, signature, arguments):
    cells = context.make_array(signature.args[0])(context, builder, arguments[0])
    words = context.make_array(signature.return_type)(context, builder)
    size = context.get_constant(types.intp, 4)
    length = builder.mul(cells.nitems, context.get_constant(types.intp, 2))
    populate_array(
        words,
        data=builder.bitcast(cells.data, ir.IntType(32).as_pointer()),
        shape=cgutils.pack_array(builder, [length]),
        strides=cgutils.pack_array(builder, [size]),
        itemsize=size,
        meminfo=None,  # the cells keep the memory alive
    )
    return words._getvalue()
