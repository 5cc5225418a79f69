"""A hint to the processor to fetch memory into the cache before it is needed."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import lower_builtin, type_callable


def prefetch(array, index):
    """Ask the processor to fetch array[index] into the cache. There is no other effect."""


@type_callable(prefetch)
def _type_of_prefetch(context):
    return lambda array, index: types.void


@lower_builtin(prefetch, types.Array, types.Integer)
def _prefetch(context, builder, signature, arguments):
    array_type, index_type = signature.args
    array, index = arguments
    data = context.make_array(array_type)(context, builder, array).data
    element = builder.gep(data, [context.cast(builder, index, index_type, types.intp)])
    address = builder.bitcast(element, ir.IntType(8).as_pointer())
    flag = ir.IntType(32)
    signature_of_prefetch = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
    function = cgutils.get_or_insert_function(
        builder.module, signature_of_prefetch, "llvm.prefetch.p0"
    )
    for_read, keep_in_all_levels, data_cache = flag(0), flag(3), flag(1)
    builder.call(function, [address, for_read, keep_in_all_levels, data_cache])
    return context.get_dummy_value()
