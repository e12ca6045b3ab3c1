"""Rows of scores of two lists: how tiles write them, and which of their items can matter.

A row has one query's scores of all items, in whole tiles; what is behind the last item, or does not
count for the query, is minus infinity.
"""

# ruff: noqa: ARG001 (numba types an intrinsic by its arguments' names and order)

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from benchmark.ranking import kernels
from benchmark.ranking.kernels import (
    COLUMNS,
    COMPRESS,
    LANES,
    ROWS,
    WIDE,
    at,
    call,
    data,
    jit,
    load,
    looked_up,
    prefetch,
    save,
    splat,
    stream,
)

BINS = 32  # straight lines that bound a scale
CHUNK = 1024  # scores that are looked at together
_I, _SMALL = ir.IntType(64), ir.IntType(32)
_V, _WHOLE = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(_SMALL, LANES)
_BYTES = ir.VectorType(ir.IntType(8), LANES)


@kernels.intrinsic
def _store_rows(
    typing: Any, q: Any, q0: Any, g: Any, g0: Any, dim: Any, l2: Any, out: Any, out0: Any,
    stride: Any,
) -> Any:  # fmt: skip
    """Write a tile's scores: ``out[out0 + row * stride + column]``."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = data(context, builder, sig.args[6], args[6], args[7])

        def write(m: int, line: list[Any]) -> None:
            row = builder.gep(target, [builder.mul(args[8], ir.Constant(_I, m))])
            for v, value in enumerate(line):
                stream(builder, value, at(builder, row, v * LANES))

        return kernels.each_row(context, builder, sig, args, write)

    return kernels.tile_signature(q, g, out, types.int64, types.int64), generate


@jit
def score_rows(queries: Any, items: Any, l2: bool, out: Any, stride: int) -> None:
    """All scores of packed queries and items, ``out[query * stride + item]``.

    ``stride`` is in whole tiles; ``out`` begins on a cache line's boundary and has room for whole
    tiles of queries.
    """
    qp, gp, dim = queries.values, items.values, items.dim
    groups = -(-queries.n // ROWS)
    for c in range(0, items.n, COLUMNS):
        for r in range(groups):
            prefetch(gp, c + COLUMNS, dim, r, groups)
            start = r * ROWS
            _store_rows(qp, start * dim, gp, c * dim, dim, l2, out, start * stride + c, stride)
    for r in range(queries.n):
        out[r * stride + items.n : (r + 1) * stride] = -np.inf


def _listed(builder: Any, mask: Any) -> Any:
    """The numbers of the lanes that are set, ascending, in the first lanes of a vector."""
    lanes = list(range(LANES))
    if COMPRESS:
        some = [ir.Constant(_WHOLE, lanes), ir.Constant(_WHOLE, ir.Undefined), mask]
        return call(builder, f"llvm.x86.avx512.mask.compress.v{LANES}i32", _WHOLE, some)
    rows = []  # AVX2 has no such instruction: a table has the answer to each mask
    for bits in range(1 << LANES):
        found = [lane for lane in lanes if bits >> lane & 1]
        rows.append(ir.Constant(_BYTES, (found + [0] * LANES)[:LANES]))
    table = ir.Constant(ir.ArrayType(_BYTES, len(rows)), rows)
    places = cgutils.global_constant(builder.module, "set_lanes", table)  # type: ignore[no-untyped-call]
    number = builder.zext(builder.bitcast(mask, ir.IntType(LANES)), _I)
    row = builder.load(builder.gep(places, [ir.Constant(_I, 0), number]))
    return builder.zext(row, _WHOLE)


def _collect(
    builder: Any, n: Any, passes: Callable[[Any], Any], write: Callable[[Any, Any, Any], None]
) -> Any:
    """Call ``write(position, set lanes, how many before)`` for each vector of ``n`` elements.

    ``passes(position)`` sets lanes. Returns how many are set.
    """
    count = cgutils.alloca_once_value(builder, ir.Constant(_I, 0))  # type: ignore[no-untyped-call]
    zero, stride = ir.Constant(_I, 0), ir.Constant(_I, LANES)
    with cgutils.for_range_slice(builder, zero, n, stride, inc=True) as (j, _):
        mask = passes(j)
        done = builder.load(count)
        write(j, _listed(builder, mask), done)
        number = builder.ctpop(builder.bitcast(mask, ir.IntType(LANES)))
        builder.store(builder.add(done, builder.zext(number, _I)), count)
    return builder.load(count)


def _places(builder: Any, target: Any) -> Callable[[Any, Any, Any], None]:
    """Have positions written, as ``_collect`` wants it."""

    def write(j: Any, lanes: Any, done: Any) -> None:
        here = builder.bitcast(builder.trunc(j, _SMALL), ir.FloatType())
        first = builder.bitcast(splat(builder, here), _WHOLE)
        save(builder, builder.add(first, lanes), builder.gep(target, [done]))

    return write


@kernels.intrinsic
def _where_high(typing: Any, x: Any, x0: Any, n: Any, low: Any, out: Any) -> Any:
    """``high`` on whole vectors; AVX2 or AVX-512 only."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = data(context, builder, sig.args[0], args[0], args[1])
        target = data(context, builder, sig.args[4], args[4], ir.Constant(_I, 0))
        least = splat(builder, args[3])

        def passes(j: Any) -> Any:
            return builder.fcmp_ordered(">=", load(builder, builder.gep(source, [j])), least)

        return _collect(builder, args[2], passes, _places(builder, target))

    return types.int64(x, types.int64, types.int64, types.float32, out), generate


@jit
def high(x: Any, x0: int, n: int, low: Any, out: Any) -> Any:
    """Write where ``x[x0 : x0 + n]`` is at least ``low``, counted from ``x0``; returns how many.

    ``n`` is a multiple of the lanes; ``out`` (int32) has room for a vector more.
    """
    if WIDE:
        return _where_high(x, x0, n, low, out)
    count = 0
    for j in range(n):
        out[count] = j
        count += int(x[x0 + j] >= low)
    return count


@kernels.intrinsic
def _pairs_high(
    typing: Any, x: Any, y: Any, n: Any, low: Any, other: Any, left: Any, right: Any
) -> Any:
    """``either_high`` on whole vectors; AVX2 or AVX-512 only."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sides, targets = (
            [data(context, builder, sig.args[i], args[i], ir.Constant(_I, 0)) for i in pair]
            for pair in ((0, 1), (5, 6))
        )
        least = [splat(builder, args[i]) for i in (3, 4)]

        def values(j: Any) -> list[Any]:
            return [load(builder, builder.gep(side, [j])) for side in sides]

        def passes(j: Any) -> Any:
            pairs = zip(values(j), least, strict=True)
            return builder.or_(*(builder.fcmp_ordered(">=", a, low) for a, low in pairs))

        def write(j: Any, lanes: Any, done: Any) -> None:
            for value, target in zip(values(j), targets, strict=True):
                some = looked_up(builder, [value], lanes)
                save(builder, some, builder.gep(target, [done]))

        return _collect(builder, args[2], passes, write)

    real = types.float32
    return types.int64(x, y, types.int64, real, real, left, right), generate


@jit
def either_high(x: Any, y: Any, low: Any, other: Any, left: Any, right: Any) -> Any:
    """Write the pairs of which the first is at least ``low`` or the second ``other``; how many.

    There are whole vectors of them; ``left`` and ``right`` have room for a vector more.
    """
    if WIDE:
        return _pairs_high(x, y, len(x), low, other, left, right)
    count = 0
    for j in range(len(x)):
        left[count], right[count] = x[j], y[j]
        count += int(x[j] >= low or y[j] >= other)
    return count


@kernels.intrinsic
def _where_bent(
    typing: Any, x: Any, y: Any, x0: Any, n: Any, first: Any, steps: Any, lines: Any, least: Any,
    out: Any,
) -> Any:  # fmt: skip
    """``bent`` on whole vectors; AVX2 or AVX-512 only."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = ir.Constant(_I, 0)
        left = data(context, builder, sig.args[0], args[0], args[2])
        right = data(context, builder, sig.args[1], args[1], args[2])
        table = data(context, builder, sig.args[6], args[6], zero)
        target = data(context, builder, sig.args[8], args[8], zero)
        tables = [
            [load(builder, at(builder, table, i)) for i in range(first, first + BINS, LANES)]
            for first in (0, BINS)
        ]
        begin, slope, goal = (splat(builder, args[i]) for i in (4, 5, 7))
        small = ir.Constant(_V, [_SLACK] * LANES)
        last = ir.Constant(_V, [float(BINS - 1)] * LANES)
        nothing = ir.Constant(_V, [0.0] * LANES)

        def fma(a: Any, b: Any, c: Any) -> Any:
            return call(builder, f"llvm.fma.v{LANES}f32", _V, [a, b, c])

        def passes(j: Any) -> Any:
            a, b = (load(builder, builder.gep(side, [j])) for side in (left, right))
            place = fma(a, slope, begin)
            place = call(builder, f"llvm.maxnum.v{LANES}f32", _V, [place, nothing])
            place = call(builder, f"llvm.minnum.v{LANES}f32", _V, [place, last])
            k = builder.fptosi(place, _WHOLE)
            start, rise = (looked_up(builder, each, k) for each in tables)
            part = builder.fmul(rise, a)
            total = builder.fadd(builder.fadd(start, part), b)
            sizes = [call(builder, f"llvm.fabs.v{LANES}f32", _V, [each]) for each in (part, b)]
            total = fma(builder.fadd(*sizes), small, total)
            return builder.fcmp_ordered(">=", total, goal)

        return _collect(builder, args[3], passes, _places(builder, target))

    real = types.float32
    return types.int64(x, y, types.int64, types.int64, real, real, lines, real, out), generate


_SLACK = 4e-6  # above what float32 rounds off a line's value


@jit
def bent(
    x: Any, y: Any, x0: int, n: int, first: Any, steps: Any, lines: Any, least: Any, out: Any
) -> Any:
    """Write where line(x) + y may reach ``least``; returns how many, see ``high``.

    The line is ``lines[k] + lines[BINS + k] * x`` with k the whole part of ``first + steps * x``
    within the bins.
    """
    if WIDE:
        return _where_bent(x, y, x0, n, first, steps, lines, least, out)
    count = 0
    for j in range(n):
        a, b = x[x0 + j], y[x0 + j]
        k = np.int64(min(max(first + steps * a, np.float32(0.0)), np.float32(BINS - 1)))
        part = lines[BINS + k] * a
        total = lines[k] + part + b + np.float32(_SLACK) * (abs(part) + abs(b))
        out[count] = j
        count += int(total >= least)
    return count
