"""Vectors of float32 in registers, for kernels that Numba compiles.

A kernel states which numbers stay in registers, because a compiler does not find it out from loops
over arrays. Each function here makes LLVM instructions for operands whose sizes are constants of
the kernel; LLVM splits vectors that are wider than a register.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

FLOAT, BYTE, INDEX = ir.FloatType(), ir.IntType(8), ir.IntType(32)
SIZES = {FLOAT: (4, "f32"), BYTE: (1, "i8")}
"""Bytes of numbers, and their names in LLVM."""
LANES = 16
"""Largest length of a vector: a register of AVX-512."""
OFF = 4
"""Position of the maximum of a window without a positive one, which has no gradient."""


def up(count: int, multiple: int = 8) -> int:
    """The next multiple of ``multiple`` from ``count`` on."""
    return -(-count // multiple) * multiple


class Rows(types.Type):  # type: ignore[misc]
    """``rows`` vectors of ``lanes`` numbers."""

    def __init__(self, rows: int, lanes: int) -> None:
        self.rows, self.lanes = rows, lanes
        super().__init__(name=f"Rows({rows}, {lanes})")


class _Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        vector = ir.VectorType(FLOAT, kind.lanes)
        super().__init__(manager, kind, ir.ArrayType(vector, kind.rows))


register_model(Rows)(_Model)


def _address(context: Any, builder: Any, signature: Any, values: Any, start: Any) -> Any:
    """Address of ``start`` in an array, the first argument."""
    array = cgutils.create_struct_proxy(signature.args[0])(context, builder, values[0])
    return builder.gep(array.data, [start])


def _mask(lanes: int, used: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(1), lanes), [i < used for i in range(lanes)])


def _everywhere(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of equal values."""
    empty = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(empty, value, INDEX(0))
    zeros = ir.Constant(ir.VectorType(INDEX, lanes), [0] * lanes)
    return builder.shuffle_vector(first, empty, zeros)


def _read(builder: Any, address: Any, lanes: int, used: int, element: Any = FLOAT) -> Any:
    """A vector whose lanes beyond ``used`` are 0; memory beyond it is not read."""
    vector, (size, code) = ir.VectorType(element, lanes), SIZES[element]
    address = builder.bitcast(address, vector.as_pointer())
    if used == lanes:
        return builder.load(address, align=size)
    arguments = [address, INDEX(size), _mask(lanes, used), ir.Constant(vector, None)]
    kind = ir.FunctionType(vector, [argument.type for argument in arguments])
    name = f"llvm.masked.load.v{lanes}{code}.p0"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _write(builder: Any, vector: Any, address: Any, used: int) -> None:
    """Write the first ``used`` lanes of a vector of floats or bytes."""
    lanes, (size, code) = vector.type.count, SIZES[vector.type.element]
    address = builder.bitcast(address, vector.type.as_pointer())
    if used == lanes:
        builder.store(vector, address, align=size)
        return
    arguments = [vector, address, ir.Constant(INDEX, size), _mask(lanes, used)]
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    name = f"llvm.masked.store.v{lanes}{code}.p0"
    builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _integer(literal: Any) -> int:
    return int(literal.literal_value)


def _kind(rows: Any, used: Any) -> Rows:
    """Vectors for rows of ``used`` numbers; the last one of a row can have unused lanes."""
    lanes = min(LANES, up(_integer(used)))
    return Rows(_integer(rows) * -(-_integer(used) // lanes), lanes)


def _pieces(builder: Any, values: Any, vectors: Rows, used: Any) -> Iterator[tuple[Any, int]]:
    """Start of each vector in an array, and the lanes that it uses.

    ``values`` has the array, the start of the first row, and the distance of rows.
    """
    total = _integer(used)
    of_row = -(-total // vectors.lanes)
    for number in range(vectors.rows):
        row, piece = divmod(number, of_row)
        first = piece * vectors.lanes
        start = builder.add(values[1], builder.mul(values[2], values[2].type(row)))
        yield builder.add(start, start.type(first)), min(vectors.lanes, total - first)


def _zeros(typing: Any, rows: Any, used: Any) -> Any:
    kind = _kind(rows, used)
    return kind(rows, used), lambda context, builder, signature, values: ir.Constant(
        context.get_value_type(kind), None
    )


def _load(typing: Any, array: Any, start: Any, stride: Any, rows: Any, used: Any) -> Any:
    kind = _kind(rows, used)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for number, (place, lanes) in enumerate(_pieces(builder, values, kind, used)):
            address = _address(context, builder, signature, values, place)
            vector = _read(builder, address, kind.lanes, lanes)
            result = builder.insert_value(result, vector, number)
        return result

    return kind(array, types.int64, types.int64, rows, used), code


def _store(typing: Any, array: Any, start: Any, stride: Any, vectors: Any, used: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        for number, (place, lanes) in enumerate(_pieces(builder, values, vectors, used)):
            address = _address(context, builder, signature, values, place)
            _write(builder, builder.extract_value(values[3], number), address, lanes)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vectors, used), code


def _added(typing: Any, vectors: Any, factor: Any, others: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = ir.VectorType(FLOAT, vectors.lanes)
        kind = ir.FunctionType(vector, [vector] * 3)
        name = f"llvm.fmuladd.v{vectors.lanes}f32"
        fused = cgutils.get_or_insert_function(builder.module, kind, name)
        factors = _everywhere(builder, values[1], vectors.lanes)
        result = values[0]
        for row in range(vectors.rows):
            terms = (builder.extract_value(part, row) for part in (values[2], values[0]))
            total = builder.call(fused, [factors, *terms])
            result = builder.insert_value(result, total, row)
        return result

    return vectors(vectors, types.float32, others), code


def _matches(typing: Any, index: Any, start: Any, byte: Any, used: Any) -> Any:
    lanes = up(_integer(used))

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature, values, values[1])
        bytes_ = _read(builder, address, lanes, _integer(used), BYTE)
        same = builder.icmp_unsigned("==", bytes_, _everywhere(builder, values[2], lanes))
        bits = builder.bitcast(same, ir.IntType(lanes))
        wide = builder.zext(bits, ir.IntType(64))
        return builder.and_(wide, wide.type((1 << _integer(used)) - 1))

    return types.int64(index, types.int64, types.uint8, used), code


def _lowest(typing: Any, bits: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), code


def _pooled(
    typing: Any, out: Any, index: Any, start: Any, a: Any, b: Any, c: Any, d: Any, used: Any
) -> Any:
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        top, *others = (builder.extract_value(value, 0) for value in values[3:7])
        bytes_ = ir.VectorType(BYTE, a.lanes)
        which = ir.Constant(bytes_, [0] * a.lanes)
        for number, vector in enumerate(others, 1):  # NaN stays, as in torch
            more = builder.fcmp_ordered(">", vector, top)
            more = builder.or_(more, builder.fcmp_unordered("uno", vector, vector))
            top = builder.select(more, vector, top)
            which = builder.select(more, ir.Constant(bytes_, [number] * a.lanes), which)
        zero = ir.Constant(top.type, [0.0] * a.lanes)
        off = builder.fcmp_ordered("<=", top, zero)
        top = builder.select(off, zero, top)
        which = builder.select(off, ir.Constant(bytes_, [OFF] * a.lanes), which)
        address = _address(context, builder, signature, values, values[2])
        _write(builder, top, address, _integer(used))
        array = cgutils.create_struct_proxy(index)(context, builder, values[1])
        _write(builder, which, builder.gep(array.data, [values[2]]), _integer(used))
        return context.get_dummy_value()

    return types.void(out, index, types.int64, a, b, c, d, used), code


zeros = intrinsic(prefer_literal=True)(_zeros)
"""``zeros(rows, used)``: vectors for ``rows`` rows of ``used`` numbers."""
load = intrinsic(prefer_literal=True)(_load)
"""``load(array, start, stride, rows, used)``: row r is array[start + r stride:][:used]."""
store = intrinsic(prefer_literal=True)(_store)
"""``store(array, start, stride, vectors, used)``: the inverse of ``load``."""
added = intrinsic(prefer_literal=True)(_added)
"""``added(vectors, factor, others)``: vectors + factor others."""
matches = intrinsic(prefer_literal=True)(_matches)
"""``matches(index, start, byte, used)``: bit i is whether index[start + i] is ``byte``."""
lowest = intrinsic(_lowest)
"""``lowest(bits)``: the position of the lowest bit; ``bits`` is not 0."""
pooled = intrinsic(prefer_literal=True)(_pooled)
"""``pooled(out, index, start, a, b, c, d, used)``: write max(a, b, c, d, 0) and its position."""
