"""Score tiles as vector instructions: every score is one fixed chain of fused multiply-adds.

A score is a chain over the dimensions, first to last, in float32: ``acc = fma(q, g, acc)`` for
products, ``acc = fma(g - q, q - g, acc)`` for negative squared distances. Each is rounded once, so
a score depends on its two vectors alone, not on tile, thread or machine; BLAS promises none of
that. LLVM vectors keep the tiles' accumulators in registers; without FMA instructions LLVM calls
the C library's ``fmaf``, which is slow and gives the same bits.

Panels: ``q`` is packed ``[group, d, ROWS]``, ``g`` ``[panel, d, COLUMNS]``. Offsets count elements.
"""

# ruff: noqa: ARG001 (numba types an intrinsic by its arguments' names and order)

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import extending, njit, types
from numba.core import cgutils, config

_F, _I = ir.FloatType(), ir.IntType(64)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
jit: Decorator = njit(cache=True, nogil=True, error_model="numpy")
"""Compile on first use, keep on disk, run without the interpreter's lock."""
intrinsic: Decorator = extending.intrinsic


def _shape() -> tuple[int, int, int]:
    """Lanes of a vector, rows of a tile, vectors in its columns: what fits the registers."""
    chosen: str | None = getattr(config, "CPU_FEATURES", None)
    host = {f"+{name}" for name, on in llvm.get_host_cpu_features().items() if on}
    features = host if chosen is None else set(chosen.split(","))
    if {"+avx512f", "+avx512vl"} <= features:
        return 16, 12, 2
    if "+avx2" in features:
        return 8, 6, 2
    return 4, 8, 2


LANES, ROWS, _VECTORS = _shape()
COLUMNS = LANES * _VECTORS
WIDE = LANES >= 8  # vectors of AVX2 or AVX-512
COMPRESS = LANES == 16
CAPACITY = 1024  # scores in a query's buffer
_V = ir.VectorType(_F, LANES)
_MASK = ir.IntType(LANES)


def call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """A call of an LLVM intrinsic."""
    kind = ir.FunctionType(result, [value.type for value in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(function, arguments)


def splat(builder: Any, scalar: Any) -> Any:
    """A float32 in all lanes."""
    one = builder.insert_element(ir.Constant(_V, ir.Undefined), scalar, ir.Constant(_I, 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_V, ir.Undefined), zeros)


def looked_up(builder: Any, table: list[Any], k: Any) -> Any:
    """The elements ``k`` (int32) of a table of one, two, four ... vectors; AVX2 or AVX-512 only."""
    bit = LANES
    if COMPRESS and len(table) > 1:
        name, bit = "llvm.x86.avx512.vpermi2var.ps.512", 2 * LANES
        pairs = zip(table[::2], table[1::2], strict=True)
        some = [call(builder, name, _V, [low, k, high]) for low, high in pairs]
    else:
        name = "llvm.x86.avx512.permvar.sf.512" if COMPRESS else "llvm.x86.avx2.permps"
        some = [call(builder, name, _V, [part, k]) for part in table]
    while len(some) > 1:  # the upper bits of the number choose among the vectors
        one = ir.Constant(k.type, [bit] * LANES)
        upper = builder.icmp_unsigned("==", builder.and_(k, one), one)
        some = [builder.select(upper, b, a) for a, b in zip(some[::2], some[1::2], strict=True)]
        bit *= 2
    return some[0]


def data(context: Any, builder: Any, kind: Any, value: Any, offset: Any) -> Any:
    """A pointer to an array's element ``offset``."""
    array = context.make_array(kind)(context, builder, value)
    return builder.gep(array.data, [offset])


def at(builder: Any, pointer: Any, place: int) -> Any:
    """A pointer to the element that lies ``place`` elements further on."""
    return builder.gep(pointer, [ir.Constant(_I, place)])


def load(builder: Any, pointer: Any) -> Any:
    """The vector of float32 that begins at a pointer."""
    value = builder.load(builder.bitcast(pointer, _V.as_pointer()))
    value.align = 4
    return value


def save(builder: Any, value: Any, pointer: Any) -> None:
    """Write a vector to where a pointer shows."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 4


def _accumulate(builder: Any, q: Any, g: Any, dim: Any, l2: bool) -> list[list[Any]]:
    """The tile's loop over the dimensions; returns ``ROWS`` x ``_VECTORS`` vectors."""
    before = builder.block
    body = builder.append_basic_block("tile")
    after = builder.append_basic_block("tile.done")
    builder.branch(body)
    builder.position_at_end(body)
    k = builder.phi(_I)
    k.add_incoming(ir.Constant(_I, 0), before)
    old = [[builder.phi(_V) for _ in range(_VECTORS)] for _ in range(ROWS)]
    row = builder.gep(g, [builder.mul(k, ir.Constant(_I, COLUMNS))])
    items = [load(builder, at(builder, row, v * LANES)) for v in range(_VECTORS)]
    column = builder.gep(q, [builder.mul(k, ir.Constant(_I, ROWS))])
    new = []
    for m in range(ROWS):
        one = splat(builder, builder.load(at(builder, column, m)))
        line = []
        for v in range(_VECTORS):
            left, right = one, items[v]
            if l2:
                right = builder.fsub(one, items[v])
                left = builder.fsub(items[v], one)
            line.append(call(builder, f"llvm.fma.v{LANES}f32", _V, [left, right, old[m][v]]))
        new.append(line)
    following = builder.add(k, ir.Constant(_I, 1))
    k.add_incoming(following, body)
    for m in range(ROWS):
        for v in range(_VECTORS):
            old[m][v].add_incoming(ir.Constant(_V, [0.0] * LANES), before)
            old[m][v].add_incoming(new[m][v], body)
    builder.cbranch(builder.icmp_signed("<", following, dim), body, after)
    builder.position_at_end(after)
    return new


def each_row(
    context: Any, builder: Any, sig: Any, args: Any, use: Callable[[int, list[Any]], None]
) -> Any:
    """Score a tile and hand each row's vectors to ``use``; ``args`` begin q, q0, g, g0, dim, l2."""
    q = data(context, builder, sig.args[0], args[0], args[1])
    g = data(context, builder, sig.args[2], args[2], args[3])
    with builder.if_else(args[5]) as branches:
        for branch, l2 in zip(branches, (True, False), strict=True):
            with branch:
                for m, line in enumerate(_accumulate(builder, q, g, args[4], l2)):
                    use(m, line)
    return context.get_dummy_value()


def tile_signature(q: Any, g: Any, *others: Any) -> Any:
    """The signature of an intrinsic whose arguments begin q, q0, g, g0, dim, l2."""
    return types.void(q, types.int64, g, types.int64, types.int64, types.boolean, *others)


@intrinsic
def store(typing: Any, q: Any, q0: Any, g: Any, g0: Any, dim: Any, l2: Any, out: Any) -> Any:
    """Write a tile's scores: ``out[row * COLUMNS + column]``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = data(context, builder, sig.args[6], args[6], ir.Constant(_I, 0))

        def write(m: int, line: list[Any]) -> None:
            for v, value in enumerate(line):
                save(builder, value, at(builder, target, m * COLUMNS + v * LANES))

        return each_row(context, builder, sig, args, write)

    return tile_signature(q, g, out), generate


@intrinsic
def keep(
    typing: Any, q: Any, q0: Any, g: Any, g0: Any, dim: Any, l2: Any, low: Any, fill: Any,
    row0: Any, out: Any, early: Any, split: Any,
) -> Any:  # fmt: skip
    """Append each row's scores >= ``low[row0 + row]`` to its buffer in ``out``; AVX-512 only.

    Where ``early`` is not None it has a bit for each column, the first ones set; ``split`` is then
    where each row's scores of these columns end.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first = args[8]
        lows, fills = (data(context, builder, sig.args[i], args[i], first) for i in (6, 7))
        place = builder.mul(first, ir.Constant(_I, CAPACITY))
        target = data(context, builder, sig.args[9], args[9], place)
        tagged, word = sig.args[11] != types.none, ir.IntType(COLUMNS)
        splits = data(context, builder, sig.args[11], args[11], first) if tagged else None

        def append(m: int, line: list[Any]) -> None:
            least = splat(builder, builder.load(at(builder, lows, m)))
            count = builder.load(at(builder, fills, m))
            row = at(builder, target, m * CAPACITY)
            masks = [builder.fcmp_ordered(">=", value, least) for value in line]
            if splits is not None:
                low, high = (builder.zext(builder.bitcast(mask, _MASK), word) for mask in masks)
                bits = builder.or_(low, builder.shl(high, ir.Constant(word, LANES)))
                before = builder.and_(bits, args[10])
                end = builder.add(count, builder.zext(builder.ctpop(before), _I))
                builder.store(end, at(builder, splits, m))
            for value, mask in zip(line, masks, strict=True):
                some = [value, ir.Constant(_V, ir.Undefined), mask]
                packed = call(builder, f"llvm.x86.avx512.mask.compress.v{LANES}f32", _V, some)
                save(builder, packed, builder.gep(row, [count]))
                number = builder.ctpop(builder.bitcast(mask, _MASK))
                count = builder.add(count, builder.zext(number, _I))
            builder.store(count, at(builder, fills, m))

        return each_row(context, builder, sig, args, append)

    bits = types.none if isinstance(early, types.NoneType) else types.uint32
    return tile_signature(q, g, low, fill, types.int64, out, bits, split), generate


@intrinsic
def fetch(typing: Any, x: Any, place: Any) -> Any:
    """Prefetch the cache line of an element; one past the end is no error."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        where = builder.bitcast(data(context, builder, sig.args[0], args[0], args[1]), byte)
        kind = [ir.Constant(ir.IntType(32), i) for i in (0, 2, 1)]  # to read, into L2, as data
        call(builder, "llvm.prefetch.p0", ir.VoidType(), [where, *kind])
        return context.get_dummy_value()

    return types.void(x, types.int64), generate


@jit
def prefetch(gp: Any, panel: int, dim: int, part: int, parts: int) -> None:
    """Prefetch one of ``parts`` parts of a panel, while another panel is worked on."""
    lines = (COLUMNS * dim + 15) // 16
    for line in range(lines * part // parts, lines * (part + 1) // parts):
        fetch(gp, panel * dim + line * 16)


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """One float32 fused multiply-add, ``a * b + c`` rounded once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return call(builder, "llvm.fma.f32", _F, list(args))

    return types.float32(types.float32, types.float32, types.float32), generate


# `view` of an array does the same, but takes seconds to compile for the messages of its errors.
@intrinsic
def bits_of(typing: Any, score: Any) -> Any:
    """The bits of a float32, as a uint32."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(types.float32), generate


@intrinsic
def float_of(typing: Any, bits: Any) -> Any:
    """The float32 of some bits."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _F)

    return types.float32(types.uint32), generate
