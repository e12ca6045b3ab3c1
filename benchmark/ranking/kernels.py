"""Score tiles as vector instructions: every score is one fixed chain of fused multiply-adds.

A score is a chain over the dimensions, first to last, in float32: ``acc = fma(q, g, acc)`` for
products, ``acc = fma(g - q, q - g, acc)`` for negative squared distances. A fused multiply-add is
rounded once, so a score depends on its two vectors and on nothing else: not on the tile, its shape,
the thread or the machine. BLAS promises none of that. Tiles are written as LLVM vectors because
their accumulators must stay in registers; without FMA instructions LLVM calls the C library's
``fmaf``, which is slow and gives the same bits.

Panels: ``q`` is packed ``[group, d, ROWS]``, ``g`` ``[panel, d, COLUMNS]``. Offsets count elements.
"""

# ruff: noqa: ARG001 (numba types an intrinsic by its arguments' names and order)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils, config
from numba.extending import intrinsic

_F = ir.FloatType()
_I = ir.IntType(64)


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile on first use, keep on disk, run without the interpreter's lock."""
    return cast("Callable[..., Any]", njit(cache=True, nogil=True, error_model="numpy")(function))


def _shape() -> tuple[int, int, int]:
    """Lanes of a vector, rows of a tile, vectors in its columns: what fits the registers."""
    chosen: str | None = getattr(config, "CPU_FEATURES", None)
    if chosen is not None:
        features = set(chosen.split(","))
    else:
        features = {f"+{name}" for name, on in llvm.get_host_cpu_features().items() if on}
    if {"+avx512f", "+avx512vl"} <= features:
        return 16, 12, 2
    if "+avx2" in features:
        return 8, 6, 2
    return 4, 8, 2


LANES, ROWS, _VECTORS = _shape()
COLUMNS = LANES * _VECTORS
COMPRESS = LANES == 16
_V = ir.VectorType(_F, LANES)


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


def vector_at(builder: Any, pointer: Any) -> Any:
    """A pointer to floats as one to a vector."""
    return builder.bitcast(pointer, _V.as_pointer())


def data(context: Any, builder: Any, kind: Any, value: Any, offset: Any) -> Any:
    """A pointer to an array's element ``offset``."""
    array = context.make_array(kind)(context, builder, value)
    return builder.gep(array.data, [offset])


def _accumulate(builder: Any, q: Any, g: Any, dim: Any, l2: bool) -> list[list[Any]]:
    """The tile's loop over the dimensions; returns ``ROWS`` x ``_VECTORS`` vectors."""
    before = builder.block
    body = builder.append_basic_block("tile")
    after = builder.append_basic_block("tile.done")
    builder.branch(body)
    builder.position_at_end(body)
    k = builder.phi(_I)
    k.add_incoming(ir.Constant(_I, 0), before)
    zero = ir.Constant(_V, [0.0] * LANES)
    old = [[builder.phi(_V) for _ in range(_VECTORS)] for _ in range(ROWS)]
    row = builder.gep(g, [builder.mul(k, ir.Constant(_I, COLUMNS))])
    items = []
    for v in range(_VECTORS):
        place = builder.gep(row, [ir.Constant(_I, v * LANES)])
        load = builder.load(vector_at(builder, place))
        load.align = 4
        items.append(load)
    column = builder.gep(q, [builder.mul(k, ir.Constant(_I, ROWS))])
    name = f"llvm.fma.v{LANES}f32"
    new = []
    for m in range(ROWS):
        one = splat(builder, builder.load(builder.gep(column, [ir.Constant(_I, m)])))
        line = []
        for v in range(_VECTORS):
            left, right = one, items[v]
            if l2:
                right = builder.fsub(one, items[v])
                left = builder.fsub(items[v], one)
            line.append(call(builder, name, _V, [left, right, old[m][v]]))
        new.append(line)
    following = builder.add(k, ir.Constant(_I, 1))
    k.add_incoming(following, body)
    for m in range(ROWS):
        for v in range(_VECTORS):
            old[m][v].add_incoming(zero, before)
            old[m][v].add_incoming(new[m][v], body)
    builder.cbranch(builder.icmp_signed("<", following, dim), body, after)
    builder.position_at_end(after)
    return new


def _store(l2: bool) -> Any:
    @intrinsic
    def store(
        typing: Any, q: Any, q0: Any, g: Any, g0: Any, dim: Any, out: Any, out0: Any, stride: Any
    ) -> Any:
        """Write a tile's scores: ``out[out0 + row * stride + column]``."""
        place = types.int64
        signature = types.void(q, place, g, place, place, out, place, place)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            left = data(context, builder, sig.args[0], args[0], args[1])
            right = data(context, builder, sig.args[2], args[2], args[3])
            target = data(context, builder, sig.args[5], args[5], args[6])
            for m, line in enumerate(_accumulate(builder, left, right, args[4], l2)):
                row = builder.gep(target, [builder.mul(args[7], ir.Constant(_I, m))])
                for v, value in enumerate(line):
                    place = builder.gep(row, [ir.Constant(_I, v * LANES)])
                    builder.store(value, vector_at(builder, place)).align = 4
            return context.get_dummy_value()

        return signature, generate

    return store


def _pick(builder: Any, value: Any, mask: Any, number: Any, out: Any, count: Any) -> Any:
    """Append the lanes of ``mask`` to ``out[count:]``; returns the new length."""
    name = f"llvm.x86.avx512.mask.compress.v{LANES}f32"
    packed = call(builder, name, _V, [value, ir.Constant(_V, ir.Undefined), mask])
    builder.store(packed, vector_at(builder, builder.gep(out, [count]))).align = 4
    return builder.add(count, builder.zext(number, _I))


def _ones(builder: Any, mask: Any) -> Any:
    return builder.ctpop(builder.bitcast(mask, ir.IntType(LANES)))


def _keep_rows(context: Any, builder: Any, sig: Any, args: Any, l2: bool) -> None:
    """The tile's scores >= their row's least go to the row's end; with ``early``, so do splits."""
    left = data(context, builder, sig.args[0], args[0], args[1])
    right = data(context, builder, sig.args[2], args[2], args[3])
    lows = data(context, builder, sig.args[5], args[5], args[7])
    fills = data(context, builder, sig.args[6], args[6], args[7])
    target = data(context, builder, sig.args[8], args[8], builder.mul(args[7], args[9]))
    splits = None if len(args) < 12 else data(context, builder, sig.args[11], args[11], args[7])
    for m, line in enumerate(_accumulate(builder, left, right, args[4], l2)):
        here = ir.Constant(_I, m)
        least = splat(builder, builder.load(builder.gep(lows, [here])))
        count = builder.load(builder.gep(fills, [here]))
        row = builder.gep(target, [builder.mul(args[9], here)])
        masks = [builder.fcmp_ordered(">=", value, least) for value in line]
        if splits is not None:
            first = builder.and_(_bits(builder, masks), args[10])
            end = builder.add(count, builder.zext(builder.ctpop(first), _I))
            builder.store(end, builder.gep(splits, [here]))
        for value, mask in zip(line, masks, strict=True):
            count = _pick(builder, value, mask, _ones(builder, mask), row, count)
        builder.store(count, builder.gep(fills, [here]))


def _bits(builder: Any, masks: list[Any]) -> Any:
    """The masks of a row's vectors as one word, the first column lowest."""
    word = ir.IntType(COLUMNS)
    low, high = (builder.zext(builder.bitcast(mask, ir.IntType(LANES)), word) for mask in masks)
    return builder.or_(low, builder.shl(high, ir.Constant(word, LANES)))


def _keep(l2: bool) -> Any:
    @intrinsic
    def keep(
        typing: Any,
        q: Any,
        q0: Any,
        g: Any,
        g0: Any,
        dim: Any,
        low: Any,
        fill: Any,
        row0: Any,
        out: Any,
        stride: Any,
    ) -> Any:
        """Append each row's scores >= ``low[row0 + row]`` to ``out[row0 + row]``; AVX-512 only."""
        place = types.int64
        signature = types.void(q, place, g, place, place, low, fill, place, out, place)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            _keep_rows(context, builder, sig, args, l2)
            return context.get_dummy_value()

        return signature, generate

    return keep


def _keep_split(l2: bool) -> Any:
    @intrinsic
    def keep(
        typing: Any,
        q: Any,
        q0: Any,
        g: Any,
        g0: Any,
        dim: Any,
        low: Any,
        fill: Any,
        row0: Any,
        out: Any,
        stride: Any,
        early: Any,
        split: Any,
    ) -> Any:
        """As ``keep``; ``split`` is where each row's scores of the columns in ``early`` end.

        ``early`` has a bit for each column, the first ones set. AVX-512 only.
        """
        place = types.int64
        signature = types.void(
            q, place, g, place, place, low, fill, place, out, place, types.uint32, split
        )

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            _keep_rows(context, builder, sig, args, l2)
            return context.get_dummy_value()

        return signature, generate

    return keep


store_dot, store_l2 = _store(False), _store(True)
keep_dot: Any = _keep(False)
keep_l2: Any = _keep(True)
keep_split_dot: Any = _keep_split(False)
keep_split_l2: Any = _keep_split(True)


@intrinsic
def _fetch(typing: Any, x: Any, place: Any) -> Any:
    """Ask for the cache line of an element; one past the end is no error."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        where = builder.bitcast(data(context, builder, sig.args[0], args[0], args[1]), byte)
        kind = [ir.Constant(ir.IntType(32), i) for i in (0, 2, 1)]  # to read, into L2, as data
        call(builder, "llvm.prefetch.p0", ir.VoidType(), [where, *kind])
        return context.get_dummy_value()

    return types.void(x, types.int64), generate


fetch: Any = _fetch


@jit
def fetch_part(gp: Any, panel: int, dim: int, part: int, parts: int) -> None:
    """Ask for one of ``parts`` parts of a panel, while another panel is worked on."""
    lines = (COLUMNS * dim + 15) // 16
    for line in range(lines * part // parts, lines * (part + 1) // parts):
        fetch(gp, panel * dim + line * 16)


@intrinsic
def _fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """One float32 fused multiply-add, ``a * b + c`` rounded once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return call(builder, "llvm.fma.f32", _F, list(args))

    return types.float32(types.float32, types.float32, types.float32), generate


fma: Any = _fma
