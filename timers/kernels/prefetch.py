"""A hint to the processor to fetch memory into the cache before it is needed."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload


def prefetch(array, index):
    """Ask the processor to fetch array[index] into the cache. There is no other effect."""


@intrinsic
def _prefetch(typing_context, array, index):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        signature_of_prefetch = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(
            builder.module, signature_of_prefetch, "llvm.prefetch.p0"
        )
        for_read, keep_in_all_levels, data_cache = flag(0), flag(3), flag(1)
        builder.call(function, [address, for_read, keep_in_all_levels, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@overload(prefetch, inline="always")
def _overload_prefetch(array, index):
    return lambda array, index: _prefetch(array, index)
