"""Numbers of thresholds that scores reach: a search tree with its top in vector registers.

The ascending thresholds become a complete binary tree in breadth-first order: node 1 is the root,
the children of node i are 2 i and 2 i + 1, missing thresholds are infinite. A score goes right
where it reaches a node, so its leaf counts the thresholds that it reaches, ties included. The first
levels, seven with AVX-512 and six with AVX2, are eight vectors: a level is a permutation of
registers, a comparison and an addition for a vector of scores. Gathers take over below; without
such vectors plain loops do the same.
"""

# ruff: noqa: ARG001 (numba types an intrinsic by its arguments' names and order)

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from benchmark.ranking import kernels
from benchmark.ranking.kernels import (
    COMPRESS,
    LANES,
    WIDE,
    at,
    call,
    data,
    jit,
    load,
    looked_up,
    save,
    splat,
)

LEVELS = LANES.bit_length() + 2  # levels in registers
COPIES = 4  # counters of one threshold, so that equal scores do not wait for each other
_F, _I, _SMALL = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_V, _WHOLE = ir.VectorType(_F, LANES), ir.VectorType(_SMALL, LANES)


def depth_of(most: int) -> int:
    """Levels of a tree of ``most`` thresholds."""
    return max(LEVELS, most.bit_length())


@jit
def plant(t: Any, tree: Any) -> Any:
    """Write the tree of the ascending thresholds ``t``; returns its levels."""
    depth = np.int64(LEVELS)
    while (np.int64(1) << depth) <= len(t):
        depth += 1
    node = np.int64(1)
    for level in range(depth):
        step = np.int64(1) << (depth - level)
        place = (step >> 1) - 1
        for _ in range(np.int64(1) << level):
            tree[node] = t[place] if place < len(t) else np.float32(np.inf)
            node += 1
            place += step
    return depth


def _constant(value: int) -> Any:
    return ir.Constant(_WHOLE, [value] * LANES)


def _child(builder: Any, node: Any, score: Any, value: Any) -> Any:
    right = builder.zext(builder.fcmp_ordered(">=", score, value), _WHOLE)
    return builder.add(builder.add(node, node), right)


def _gathered(builder: Any, nodes: Any, node: Any) -> Any:
    place = builder.bitcast(nodes, ir.IntType(8).as_pointer())
    if COMPRESS:
        name = "llvm.x86.avx512.mask.gather.dps.512"
        all_of, size = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [1] * LANES), _SMALL
    else:
        name = "llvm.x86.avx2.gather.d.ps.256"
        all_of, size = builder.bitcast(_constant(-1), _V), ir.IntType(8)
    arguments = [ir.Constant(_V, ir.Undefined), place, node, all_of, ir.Constant(size, 4)]
    return call(builder, name, _V, arguments)


@kernels.intrinsic
def _slots(typing: Any, scores: Any, n: Any, tree: Any, depth: Any, copies: Any, out: Any) -> Any:
    """``reached`` on whole vectors, up to ``LANES - 1`` values past ``n``; AVX2 or AVX-512 only."""
    signature = types.void(scores, types.int64, tree, types.int64, types.int32, out)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def everywhere(number: Any) -> Any:
            return builder.bitcast(splat(builder, builder.bitcast(number, _F)), _WHOLE)

        zero = ir.Constant(_I, 0)
        source, nodes, target = (
            data(context, builder, sig.args[i], args[i], zero) for i in (0, 2, 5)
        )
        tables = [load(builder, at(builder, nodes, i * LANES)) for i in range(2**LEVELS // LANES)]
        below = builder.sub(args[3], ir.Constant(_I, LEVELS))
        one = ir.Constant(_SMALL, 1)
        first = everywhere(builder.shl(one, builder.trunc(args[3], _SMALL)))
        factor = everywhere(args[4])
        lanes = ir.Constant(_WHOLE, list(range(LANES)))
        lanes = builder.and_(lanes, everywhere(builder.sub(args[4], one)))
        kept = cgutils.alloca_once(builder, _WHOLE)  # type: ignore[no-untyped-call]
        stride = ir.Constant(_I, LANES)
        with cgutils.for_range_slice(builder, zero, args[1], stride, inc=True) as (j, _):
            score = load(builder, builder.gep(source, [j]))
            node = _constant(1)
            for some in (*[tables[:1]] * (LEVELS - 3), tables[1:2], tables[2:4], tables[4:8]):
                node = _child(builder, node, score, looked_up(builder, some, node))
            builder.store(node, kept)
            with cgutils.for_range(builder, below):
                node = builder.load(kept)
                builder.store(_child(builder, node, score, _gathered(builder, nodes, node)), kept)
            slot = builder.mul(builder.sub(builder.load(kept), first), factor)
            save(builder, builder.add(slot, lanes), builder.gep(target, [j]))
        return context.get_dummy_value()

    return signature, generate


@jit
def reached(s: Any, n: int, tree: Any, depth: int, copies: int, out: Any) -> None:
    """Write how many thresholds each of ``n`` scores reaches; room for a vector more is used.

    The numbers are multiplied by ``copies``, a power of two, and a copy's number is added: 0, 1,
    ... in turn.
    """
    if WIDE:
        _slots(s, n, tree, depth, copies, out)
        return
    out[:n] = 1
    for _ in range(depth):
        for j in range(np.uint64(n)):
            node = np.uint64(out[j])
            out[j] = np.int32(np.uint64(2) * node + np.uint64(s[j] >= tree[node]))
    for j in range(n):
        out[j] = np.int32((out[j] - (1 << depth)) * copies + (j & (copies - 1)))
