"""The pipeline of the vectoriser: every pass in order, and why it is there.

`lower_kernel` runs `LOWERING` on the function of one thread, `coarsen_rows` may run `COARSENING` on
a copy, and `vectorize` runs `VECTORIZATION` on the results for each `VectorSpec`. Functions that a
kernel calls go through `LOWERING_OF_CALLEES` and `LAYOUT_OF_CALLEES` first. A pass names what it
needs, gives and invalidates: analyses (``cfg``, ``divergence``), and properties of the function
(``scalars``: no small vectors are left; ``barriers end blocks``; ``simple loops``: one exit,
preheaders, latches).
"""

from __future__ import annotations

from collections.abc import Callable

from metalloid.compiler.analysis.barrier_divergence import must_be_uniform
from metalloid.compiler.analysis.divergence import analyse
from metalloid.compiler.analysis.shapes import VARYING, uniform
from metalloid.compiler.ir.function import Function
from metalloid.compiler.ir.parser import parse_function
from metalloid.compiler.ir.pass_manager import Pass, run_passes
from metalloid.compiler.ir.types import Unsupported
from metalloid.compiler.transforms.assertions import lower_assertions
from metalloid.compiler.transforms.callees import (
    NO_CALLEES,
    Callee,
    Callees,
    lower_call_arguments,
    receive,
    vector_positions,
    with_units,
)
from metalloid.compiler.transforms.coarsen import coarsen
from metalloid.compiler.transforms.defer_atomics import defer_atomics
from metalloid.compiler.transforms.invariant_loads import mark_invariant_loads
from metalloid.compiler.transforms.legalize_bf16 import legalize_bf16
from metalloid.compiler.transforms.loop_simplify import simplify_loops
from metalloid.compiler.transforms.lower_memcpy import lower_memcpy
from metalloid.compiler.transforms.matrix_forwarding import forward_matrices
from metalloid.compiler.transforms.matrix_products import lower_matrix_products
from metalloid.compiler.transforms.private_atomics import demote_private_atomics
from metalloid.compiler.transforms.rematerialize import rematerialize
from metalloid.compiler.transforms.scalarize_vectors import scalarize_vectors
from metalloid.compiler.transforms.soa_private import soa_private
from metalloid.compiler.transforms.split_at_barriers import split_at_barriers
from metalloid.compiler.transforms.threadgroup_variables import lower_threadgroup_variables
from metalloid.compiler.transforms.version_uniform_loops import version_uniform_loops
from metalloid.compiler.vectorize.atomics.private_sums import find_sums
from metalloid.compiler.vectorize.context import Context, RowParameters, VectorizedFunction
from metalloid.compiler.vectorize.emit import linearize
from metalloid.compiler.vectorize.memory.interleave_groups import find_groups
from metalloid.compiler.vectorize.spec import KernelABI, VectorSpec
from metalloid.compiler.vectorize.workgroup.workgroup_uniform import workgroup_uniform_values

# ---- passes that need the context ----------------------------------------------------------------


def _lower_threadgroup_variables(function: Function, context: Context) -> None:
    end = function.parameters[context.kernel.memory]
    lower_threadgroup_variables(function, context.kernel.variables, end)


def _mark_invariant_loads(function: Function, context: Context) -> None:
    read_only = context.parameters(function, context.kernel.read_only)
    mark_invariant_loads(function, read_only, "call_invariant")


def _receive_arguments(function: Function, context: Context) -> None:
    assert context.callee is not None
    receive(function, context.callee)


def _lower_call_arguments(function: Function, context: Context) -> None:
    lower_call_arguments(function, context.callees)


def _legalize_bf16(function: Function, context: Context) -> None:
    legalize_bf16(function, context.callees)


def _defer_atomics(function: Function, context: Context) -> None:
    if not context.callees:
        defer_atomics(function, function.parameters[context.kernel.memory])


def _coarsen(function: Function, context: Context) -> bool:
    given = context.row_parameters
    assert given is not None
    context.rows = coarsen(function, given.along, given.across, given.index, given.max_carried)
    return context.rows > 1


def _soa_private(function: Function, context: Context) -> None:
    if not context.form.masked:
        soa_private(function, context.form.width, context.callees)


def _version_uniform_loops(function: Function, context: Context) -> None:
    form = context.form
    if not (form.partial or form.masked):
        version_uniform_loops(function, context.parameters(function, form.shapes))


def _simplify_loops(function: Function, context: Context) -> None:
    context._graph = simplify_loops(function)


def _rematerialize(function: Function, context: Context) -> None:
    everywhere = (n for n in range(len(function.parameters)) if n not in context.form.shapes)
    rematerialize(function, context.graph, context.parameters(function, everywhere))


def _workgroup_uniform(function: Function, context: Context) -> None:
    if context.form.has_frame:
        given = context.parameters(function, context.form.common)
        context.common = workgroup_uniform_values(function, context.graph, given)


def _divergence(function: Function, context: Context) -> None:
    form, graph = context.form, context.graph
    shapes = {
        parameter.name: form.shapes.get(position, uniform(form.width))
        for position, parameter in enumerate(function.parameters)
    }
    context._divergence = analyse(
        function,
        graph,
        form.width,
        shapes,
        form.partial or form.masked,
        forbidden=must_be_uniform(function, graph) if form.is_strict else {},
    )


def _forward_matrices(function: Function, context: Context) -> bool:
    return forward_matrices(function, context.divergence, pairs=context.form.mask_bits == 1)


def _interleave_groups(function: Function, context: Context) -> None:
    context.groups = find_groups(context.divergence)


def _group_sums(function: Function, context: Context) -> None:
    context.sums = find_sums(context.divergence)


def _plain(run: Callable[[Function], object]) -> Callable[[Function, Context], object]:
    """A pass that needs no context."""
    return lambda function, context: run(function)


#: Properties of lowered functions.
_LOWERED = frozenset(("scalars", "legal types", "barriers end blocks"))

# ---- the pipelines -------------------------------------------------------------------------------

_LOWER_ASSERTIONS: Pass[Context] = Pass(
    "lower-assertions", _plain(lower_assertions),
    "a branch to a failed assertion becomes an instruction: the code after it needs no masks",
)  # fmt: skip

#: What kernels and their callees share.
_COMMON_LOWERING: tuple[Pass[Context], ...] = (
    Pass(
        "lower-call-arguments", _lower_call_arguments,
        "structs and private arrays go to functions in memory, which has a layout for all lanes",
    ),
    Pass(
        "demote-private-atomics", _plain(demote_private_atomics),
        "loads and stores that one thread of the system sees need not be atomic", optional=True,
    ),
    Pass(
        "lower-memcpy", _plain(lower_memcpy),
        "small copies and fills become loads and stores, which vectorise", gives=("no memcpy",),
    ),
    Pass(
        "lower-matrix-products", _plain(lower_matrix_products),
        "a product of simdgroup matrices becomes an operation of the whole simdgroup",
    ),
    Pass(
        "scalarize-vectors", _plain(scalarize_vectors),
        "a float4 becomes four floats: lanes are what vectors are needed for",
        needs=("no memcpy",), gives=("scalars",),
    ),
    Pass(
        "legalize-bf16", _legalize_bf16,
        "few processors have vectors of bfloat; the others compute with floats",
        needs=("scalars",), gives=("legal types",),
    ),
)  # fmt: skip

#: From the function of one thread as clang leaves it, to one that can be vectorised.
LOWERING: tuple[Pass[Context], ...] = (
    Pass(
        "lower-threadgroup-variables", _lower_threadgroup_variables,
        "thread-local globals become offsets from one parameter",
    ),
    _LOWER_ASSERTIONS,
    Pass(
        "mark-invariant-loads", _mark_invariant_loads,
        "loads of a launch's arguments give the same everywhere: they can be rematerialised",
        optional=True,
    ),
    *_COMMON_LOWERING,
    Pass(
        "defer-atomics", _defer_atomics,
        "updates whose results are unused accumulate in a simdgroup", needs=("scalars",),
        optional=True,
    ),
    Pass(
        "split-at-barriers", _plain(split_at_barriers),
        "a parallel region begins with a block", gives=("barriers end blocks",),
    ),
)  # fmt: skip

#: The same for a function that kernels call; it has no barriers.
LOWERING_OF_CALLEES: tuple[Pass[Context], ...] = (
    _LOWER_ASSERTIONS,
    Pass(
        "receive-arguments", _receive_arguments,
        "vectors of arguments and the mask of active lanes become parameters",
        gives=("barriers end blocks",),
    ),
    *_COMMON_LOWERING,
)  # fmt: skip

_SOA_PRIVATE: Pass[Context] = Pass(
    "soa-private", _soa_private,
    "elements of the lanes' private arrays lie side by side: accesses are contiguous",
    needs=("scalars", "legal types"),
)  # fmt: skip

#: The layout of private arrays in a lowered function that kernels call: its callers need it first.
LAYOUT_OF_CALLEES: tuple[Pass[Context], ...] = (_SOA_PRIVATE,)

#: A second form of a lowered kernel without barriers, for whole rows of threads.
COARSENING: tuple[Pass[Context], ...] = (
    Pass(
        "coarsen", _coarsen, "a thread does the work of several rows that share loads",
        needs=("scalars", "barriers end blocks"), optional=True,
    ),
)  # fmt: skip

#: From the lowered function of one thread to vector code.
VECTORIZATION: tuple[Pass[Context], ...] = (
    _SOA_PRIVATE,
    Pass(
        "version-uniform-loops", _version_uniform_loops,
        "a copy of a loop without masks runs for as long as all lanes go on", optional=True,
    ),
    Pass(
        "simplify-loops", _simplify_loops,
        "one exit, two-way branches, preheaders and latches: what linearisation expects",
        needs=("barriers end blocks",), gives=("cfg", "simple loops"),
    ),
    Pass(
        "rematerialize", _rematerialize,
        "cheap values are computed again after a barrier instead of kept in memory",
        needs=("cfg",), optional=True,
    ),
    Pass(
        "workgroup-uniform", _workgroup_uniform,
        "what all simdgroups of a threadgroup share across barriers is kept once",
        needs=("cfg",), optional=True,
    ),
    Pass(
        "divergence", _divergence,
        "which branches diverge, and which values vary between lanes",
        needs=("cfg", "simple loops"), gives=("divergence",),
    ),
    Pass(
        "forward-matrices", _forward_matrices,
        "a matrix stays whole from one product to the next", needs=("divergence",),
        invalidates=("divergence",), optional=True,
    ),
    Pass(
        "divergence", _divergence, "again if matrices were forwarded",
        needs=("cfg", "simple loops"), gives=("divergence",),
    ),
    Pass(
        "interleave-groups", _interleave_groups,
        "accesses to neighbouring members become one wide access", needs=("divergence",),
        optional=True,
    ),
    Pass(
        "group-sums", _group_sums,
        "additions to copies of buffers have no order: those of a block are done together",
        needs=("divergence",), optional=True,
    ),
    Pass(
        "linearize", linearize, "divergent branches become masks, and instructions vector code",
        needs=("scalars", "legal types", "simple loops", "divergence"),
    ),
)  # fmt: skip


def lower_kernel(ir: str, abi: KernelABI, callees: Callees = NO_CALLEES) -> Function:
    """The function of one thread in a module without address spaces, ready for `vectorize`.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    function = parse_function(ir, abi.name)
    run_passes(function, LOWERING, Context(callees, abi=abi))
    return function


def coarsen_rows(function: Function, parameters: RowParameters) -> int:
    """Let a lowered kernel do the work of several rows of threads, if profitable; how many."""
    context = Context(row_parameters=parameters, valid={*_LOWERED})
    run_passes(function, COARSENING, context)
    return context.rows


def vectorize_callees(
    ir: str, abi: KernelABI, callees: dict[str, Callee], form: VectorSpec
) -> list[VectorizedFunction]:
    """Vector forms of functions; `callees` learn how their private arrays lie.

    Parameters
    ----------
    ir : str
        The module without address spaces.
    abi : KernelABI
        That of their caller.
    callees : dict of Callee
        Each before those that call it.
    form : VectorSpec
        That of a caller: lanes and masks are the same.

    Raises
    ------
    Unsupported
        If a function does what has no vector form.
    """
    vectorized = []
    for name, callee in list(callees.items()):
        function = parse_function(ir, name[1:])
        if any(v.name in abi.variables for i in function.instructions() for v in i.operands):
            raise Unsupported("a threadgroup variable of a function")
        run_passes(function, LOWERING_OF_CALLEES, Context(callees, callee=callee))
        run_passes(function, LAYOUT_OF_CALLEES, Context(callees, spec=form, valid={*_LOWERED}))
        callees[name] = with_units(callee, function)
        vectorized.append(vectorize(function, spec_of_callee(callee, form), callees))
    return vectorized


def spec_of_callee(callee: Callee, form: VectorSpec) -> VectorSpec:
    """The spec of a function that vector code of `form` calls."""
    vectors = vector_positions(callee)
    return VectorSpec(
        callee.vector_name, form.width, form.mask_bits, dict.fromkeys(vectors, VARYING), 0,
        vectors=vectors, masked=True,
    )  # fmt: skip


def vectorize(
    function: Function, form: VectorSpec, callees: Callees = NO_CALLEES
) -> VectorizedFunction:
    """The function that does for a simdgroup of threads what `function` does for one.

    Parameters
    ----------
    function : Function
        As `lower_kernel` gives it; it is changed, and of no use afterwards.
    form : VectorSpec
    callees : mapping of Callee
        Functions that have a vector form of their own.

    Raises
    ------
    Unsupported
        If the function does what has no vector form.
    """
    context = Context(callees, spec=form, valid={*_LOWERED})
    run_passes(function, VECTORIZATION, context)
    assert context.result is not None
    return context.result
