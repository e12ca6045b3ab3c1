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


def _call(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    kind = ir.FunctionType(result, [value.type for value in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(function, arguments)


def _splat(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(_V, ir.Undefined), scalar, ir.Constant(_I, 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_V, ir.Undefined), zeros)


def _vector_at(builder: Any, pointer: Any) -> Any:
    return builder.bitcast(pointer, _V.as_pointer())


def _data(context: Any, builder: Any, kind: Any, value: Any, offset: Any) -> Any:
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
        load = builder.load(_vector_at(builder, place))
        load.align = 4
        items.append(load)
    column = builder.gep(q, [builder.mul(k, ir.Constant(_I, ROWS))])
    name = f"llvm.fma.v{LANES}f32"
    new = []
    for m in range(ROWS):
        one = _splat(builder, builder.load(builder.gep(column, [ir.Constant(_I, m)])))
        line = []
        for v in range(_VECTORS):
            left, right = one, items[v]
            if l2:
                right = builder.fsub(one, items[v])
                left = builder.fsub(items[v], one)
            line.append(_call(builder, name, _V, [left, right, old[m][v]]))
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
            left = _data(context, builder, sig.args[0], args[0], args[1])
            right = _data(context, builder, sig.args[2], args[2], args[3])
            target = _data(context, builder, sig.args[5], args[5], args[6])
            for m, line in enumerate(_accumulate(builder, left, right, args[4], l2)):
                row = builder.gep(target, [builder.mul(args[7], ir.Constant(_I, m))])
                for v, value in enumerate(line):
                    place = builder.gep(row, [ir.Constant(_I, v * LANES)])
                    builder.store(value, _vector_at(builder, place)).align = 4
            return context.get_dummy_value()

        return signature, generate

    return store


def _pick(builder: Any, value: Any, mask: Any, number: Any, out: Any, count: Any) -> Any:
    """Append the lanes of ``mask`` to ``out[count:]``; returns the new length."""
    name = f"llvm.x86.avx512.mask.compress.v{LANES}f32"
    packed = _call(builder, name, _V, [value, ir.Constant(_V, ir.Undefined), mask])
    builder.store(packed, _vector_at(builder, builder.gep(out, [count]))).align = 4
    return builder.add(count, builder.zext(number, _I))


def _ones(builder: Any, mask: Any) -> Any:
    return builder.ctpop(builder.bitcast(mask, ir.IntType(LANES)))


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
            left = _data(context, builder, sig.args[0], args[0], args[1])
            right = _data(context, builder, sig.args[2], args[2], args[3])
            lows = _data(context, builder, sig.args[5], args[5], args[7])
            fills = _data(context, builder, sig.args[6], args[6], args[7])
            base = builder.mul(args[7], args[9])
            target = _data(context, builder, sig.args[8], args[8], base)
            for m, line in enumerate(_accumulate(builder, left, right, args[4], l2)):
                here = ir.Constant(_I, m)
                least = _splat(builder, builder.load(builder.gep(lows, [here])))
                count = builder.load(builder.gep(fills, [here]))
                row = builder.gep(target, [builder.mul(args[9], here)])
                for value in line:
                    mask = builder.fcmp_ordered(">=", value, least)
                    count = _pick(builder, value, mask, _ones(builder, mask), row, count)
                builder.store(count, builder.gep(fills, [here]))
            return context.get_dummy_value()

        return signature, generate

    return keep


CUTS = 4  # lowest thresholds, whose scores are counted in registers instead of kept


def _keep_counted(l2: bool) -> Any:
    @intrinsic
    def keep(
        typing: Any,
        q: Any,
        q0: Any,
        g: Any,
        g0: Any,
        dim: Any,
        cuts: Any,
        fill: Any,
        row0: Any,
        out: Any,
        stride: Any,
        tag: Any,
        tag0: Any,
        out_tag: Any,
        early: Any,
        counts: Any,
    ) -> Any:
        """As ``keep``, with the columns' 32-bit tags, and counts of the scores >= each cut.

        ``cuts`` holds ``CUTS + 1`` values a row; the scores >= the last one are kept.
        ``counts[row0 + row]`` holds as many counts over the columns whose bit is set in ``early``,
        then as many over all columns. AVX-512 only.
        """
        place = types.int64
        signature = types.void(
            q, place, g, place, place, cuts, fill, place, out, place, tag, place, out_tag,
            types.uint32, counts,
        )  # fmt: skip

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            n, word = CUTS + 1, ir.IntType(COLUMNS)
            left = _data(context, builder, sig.args[0], args[0], args[1])
            right = _data(context, builder, sig.args[2], args[2], args[3])
            row0 = args[7]
            levels = _data(
                context, builder, sig.args[5], args[5], builder.mul(row0, ir.Constant(_I, n))
            )
            fills = _data(context, builder, sig.args[6], args[6], row0)
            base = builder.mul(row0, args[9])
            target = _data(context, builder, sig.args[8], args[8], base)
            source = _data(context, builder, sig.args[10], args[10], args[11])
            tags = _data(context, builder, sig.args[12], args[12], base)
            tallies = _data(
                context, builder, sig.args[14], args[14], builder.mul(row0, ir.Constant(_I, 2 * n))
            )
            moved = []
            for v in range(_VECTORS):
                place = builder.gep(source, [ir.Constant(_I, v * LANES)])
                moved.append(builder.load(_vector_at(builder, place)))
                moved[-1].align = 4
            for m, line in enumerate(_accumulate(builder, left, right, args[4], l2)):
                shift = builder.mul(args[9], ir.Constant(_I, m))
                row, tag_row = builder.gep(target, [shift]), builder.gep(tags, [shift])
                masks: list[Any] = []
                for j in range(n):
                    place = builder.gep(levels, [ir.Constant(_I, m * n + j)])
                    least = _splat(builder, builder.load(place))
                    masks = [builder.fcmp_ordered(">=", value, least) for value in line]
                    parts = [
                        builder.zext(builder.bitcast(mask, ir.IntType(LANES)), word)
                        for mask in masks
                    ]
                    bits = builder.or_(parts[0], builder.shl(parts[1], ir.Constant(word, LANES)))
                    for k, some in ((j, builder.and_(bits, args[13])), (n + j, bits)):
                        place = builder.gep(tallies, [ir.Constant(_I, 2 * m * n + k)])
                        builder.store(builder.add(builder.load(place), builder.ctpop(some)), place)
                place = builder.gep(fills, [ir.Constant(_I, m)])
                count = builder.load(place)
                for value, label, mask in zip(line, moved, masks, strict=True):
                    number = _ones(builder, mask)
                    _pick(builder, label, mask, number, tag_row, count)
                    count = _pick(builder, value, mask, number, row, count)
                builder.store(count, place)
            return context.get_dummy_value()

        return signature, generate

    return keep


store_dot, store_l2 = _store(False), _store(True)
keep_dot: Any = _keep(False)
keep_l2: Any = _keep(True)
keep_counted_dot: Any = _keep_counted(False)
keep_counted_l2: Any = _keep_counted(True)


def _slots(copies: int) -> Any:
    @intrinsic
    def slots(
        typing: Any,
        scores: Any,
        n: Any,
        low: Any,
        scale: Any,
        top: Any,
        edges: Any,
        base: Any,
        out: Any,
    ) -> Any:
        """Write each score's counter, -1 where its table step must be walked; AVX-512 only.

        Works on whole vectors: reads and writes up to ``LANES - 1`` values past ``n``.
        """
        one = types.float32
        signature = types.void(scores, types.int64, one, one, one, edges, base, out)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            zero = ir.Constant(_I, 0)
            source, edge_at, base_at, target = (
                _data(context, builder, sig.args[i], args[i], zero) for i in (0, 5, 6, 7)
            )
            least, factor, most = (_splat(builder, args[i]) for i in (2, 3, 4))
            small = ir.IntType(32)
            whole = ir.VectorType(small, LANES)
            lanes = ir.Constant(whole, [lane % copies for lane in range(LANES)])
            all_of = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1] * LANES)
            nothing = ir.Constant(_V, [0.0] * LANES)
            several = ir.Constant(_V, [float("-inf")] * LANES)

            def gather(pointer: Any, kind: Any, suffix: str, step: Any) -> Any:
                place = builder.bitcast(pointer, ir.IntType(8).as_pointer())
                size = ir.Constant(small, 4)
                arguments = [ir.Constant(kind, ir.Undefined), place, step, all_of, size]
                return _call(builder, f"llvm.x86.avx512.mask.gather.{suffix}", kind, arguments)

            stride = ir.Constant(_I, LANES)
            with cgutils.for_range_slice(builder, zero, args[1], stride, inc=True) as (j, _):
                load = builder.load(_vector_at(builder, builder.gep(source, [j])))
                load.align = 4
                step = builder.fmul(builder.fsub(load, least), factor)
                step = builder.select(builder.fcmp_ordered("<", step, most), step, most)
                step = builder.select(builder.fcmp_ordered(">", step, nothing), step, nothing)
                step = builder.fptosi(step, whole)
                edge = gather(edge_at, _V, "dps.512", step)
                slot = gather(base_at, whole, "dpi.512", step)
                slot = builder.add(
                    slot, builder.zext(builder.fcmp_ordered(">=", load, edge), whole)
                )
                slot = builder.add(builder.mul(slot, ir.Constant(whole, [copies] * LANES)), lanes)
                walk = builder.fcmp_ordered("==", edge, several)
                slot = builder.select(walk, ir.Constant(whole, [-1] * LANES), slot)
                place = builder.bitcast(builder.gep(target, [j]), whole.as_pointer())
                builder.store(slot, place).align = 4
            return context.get_dummy_value()

        return signature, generate

    return slots


COPIES = 4  # counters of one threshold, so that equal scores do not wait for each other
slots_copied: Any = _slots(COPIES)
slots_single: Any = _slots(1)


@intrinsic
def _fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """One float32 fused multiply-add, ``a * b + c`` rounded once."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "llvm.fma.f32", _F, list(args))

    return types.float32(types.float32, types.float32, types.float32), generate


fma: Any = _fma
