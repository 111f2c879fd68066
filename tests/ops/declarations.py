"""What must hold for every declared operation: one function a property, each an assertion.

`test_registry.py` runs them over the registry, and over declarations that are wrong on purpose.
The finite differences here are the test's own and share no code with `kael.checker`.
"""

import re
import zlib

import numpy as np

from kael import dtypes
from kael.engine.backward import backward
from kael.engine.node import sum_to_shape
from kael.errors import KaelError
from kael.specs.expression import parse
from kael.tensors import Tensor

STEP = 1e-3
LARGEST = 40  # entries of one operand; more would only repeat the formula


def draw(op):
    """The samples of an operation, the same in every run."""
    assert op.samples is not None, f"{op.name} draws no samples"
    samples = list(op.samples(np.random.default_rng(zlib.crc32(op.name.encode()))))
    assert samples, f"{op.name} draws no samples"
    assert any(all(array.size for array in sample.inputs) for sample in samples), op.name
    return samples


def bound(op, arrays, arguments, requires=True):
    """The operands as leaves and the prepared arguments of a call, as the operation itself sees."""
    leaves = [Tensor(array) for array in arrays]
    for leaf in leaves:
        leaf.requires_grad_(requires and leaf.dtype.kind == "f")
    inputs, plain = op.bind((), operands_by_name(op, leaves) | dict(arguments))
    return leaves, inputs, plain


def operands_by_name(op, leaves):
    """The operands under the operation's parameter names."""
    if op.variadic:
        return {op.inputs[0]: leaves}
    return dict(zip(op.inputs, leaves, strict=True))


def formulas_of(op, count):
    """Whether each operand has a formula."""
    if op.joint is not None or op.variadic:
        return [True] * count
    return [formula is not None for formula in op.vjps]


def run(op, arrays, arguments, upstream=None):
    """Output array and gradients by the engine, under a given or a drawn upstream gradient."""
    leaves, inputs, plain = bound(op, arrays, arguments)
    out = op.apply(inputs, plain)
    if not out.requires_grad:
        return out._array, None, [None] * len(leaves)
    if upstream is None:
        rng = np.random.default_rng(out._array.size + 7)
        # Away from 0 and 1, of both signs: a formula that ignores or squares it is caught.
        upstream = rng.uniform(0.5, 2.0, out.shape) * rng.choice([-1.0, 1.0], out.shape)
    upstream = np.asarray(upstream, out.dtype)
    backward(out, upstream)
    return (
        out._array,
        upstream,
        [None if leaf.grad is None else leaf.grad._array for leaf in leaves],
    )


def numeric(op, arrays, arguments, which, upstream):
    """The gradient of sum(upstream * out) by a five-point difference."""
    arrays = [array.copy() for array in arrays]
    moved = arrays[which]
    gradient = np.zeros(moved.shape)
    _, _, plain = bound(op, arrays, arguments, requires=False)

    def value(at, offset):
        kept = moved[at]
        moved[at] = kept + offset * STEP
        out = np.array(op.compute(arrays, plain))  # a view would change with its operand
        moved[at] = kept
        return out

    def change(at, offset):
        above, below = value(at, offset), value(at, -offset)
        # An entry that stays infinite does not change.
        return float((np.subtract(above, below, where=above != below, out=np.zeros(above.shape))
                      * upstream).sum())  # fmt: skip

    for at in np.ndindex(moved.shape):
        gradient[at] = (8 * change(at, 1) - change(at, 2)) / (12 * STEP)
    return gradient


def spread_out(array):
    """The same values in memory that is not contiguous."""
    if array.ndim == 0 or array.size == 0:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    view = np.moveaxis(np.moveaxis(wide, -1, 0).copy(), 0, -1)[..., ::2]
    view[...] = array
    return view


def differentiable(op, sample):
    """The operands of a sample that get a gradient."""
    given = [array.dtype.kind == "f" for array in sample.inputs]
    return [a and b for a, b in zip(given, formulas_of(op, len(given)), strict=True)]


def check_gradients(op):
    """Formulas agree with differences over all samples, for contiguous and strided operands."""
    compared = 0
    for sample in draw(op):
        for arrays in (sample.inputs, [spread_out(array) for array in sample.inputs]):
            if op.name == "view" and arrays is not sample.inputs:
                continue  # refuses what is not contiguous
            out, upstream, gradients = run(op, arrays, sample.arguments)
            if not op.differentiable:
                assert upstream is None, f"{op.name} has no formula but records"
                continue
            for which, asked in enumerate(differentiable(op, sample)):
                if not asked or upstream is None:
                    continue
                assert sample.inputs[which].size <= LARGEST, f"{op.name}: samples are too large"
                expected = numeric(op, sample.inputs, sample.arguments, which, upstream)
                got = gradients[which]
                assert got is not None, f"{op.name}: operand {which} got no gradient"
                assert got.shape == sample.inputs[which].shape, op.name
                size = np.abs(out).max(initial=0.0, where=np.isfinite(out))
                scale = np.abs(expected).max(initial=1.0) + size
                np.testing.assert_allclose(
                    got, expected, rtol=1e-7, atol=2e-9 * scale, err_msg=f"{op.name} {which}"
                )
                compared += got.size
    assert compared or not op.differentiable, f"{op.name}: nothing was compared"


def per_element(g, arguments, operands):
    """The upstream gradient of each element of a loss, as the texts of losses mean `g`."""
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    count = {"mean": np.prod(shape), "batchmean": shape[0] if shape else 1}
    return g / max(1, count.get(arguments["reduction"], 1))


def in_language(text):
    """A text as an expression: `shape(x)` is written `(x).shape` there."""
    while (start := re.search(r"\bshape\(", text)) is not None:
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = f"{text[: start.start()]}({text[start.end() : end - 1]}).shape{text[end:]}"
    return text


def check_text(op):
    """Each formula's text, evaluated in the expression language, gives the formula's gradient."""
    if not op.differentiable:
        assert not any(op.vjp_text), f"{op.name} has a text without a formula"
        return
    if op.prose:
        assert all(
            bool(text) == has
            for text, has in zip(op.vjp_text, formulas_of(op, len(op.inputs)), strict=True)
        ), f"{op.name}: a text is missing or too many"
        return
    compared = 0
    for sample in draw(op):
        leaves, inputs, plain = bound(op, sample.inputs, sample.arguments)
        out, upstream, gradients = run(op, sample.inputs, sample.arguments)
        if upstream is None:
            continue
        names = dict(zip(op.arguments, plain, strict=True))
        upstream = per_element(upstream, names, inputs) if "reduction" in names else upstream
        names |= {"g": Tensor(np.asarray(upstream)), "out": Tensor(out)}
        names |= (
            {op.inputs[0]: leaves} if op.variadic else dict(zip(op.inputs, leaves, strict=True))
        )
        for which, text in enumerate(op.vjp_text):
            if op.joint is None and op.vjps[which] is None:
                assert not text, f"{op.name}: a text without a formula"
                continue
            assert text, f"{op.name}: no text for {op.inputs[which]}"
            if gradients[which] is None:
                continue
            value = parse(in_language(text)).evaluate(names)._array
            given = sample.inputs[which].shape
            if op.broadcasts and (value.shape != given or "reduction" in names):
                loss = [array.shape for array in sample.inputs] if "reduction" in names else []
                shape = np.broadcast_shapes(value.shape, given, *(loss or [out.shape]))
                value = sum_to_shape(np.broadcast_to(value, shape), given)
            assert value.shape == gradients[which].shape, f"{op.name}: {text}"
            np.testing.assert_allclose(
                gradients[which], value, rtol=1e-9, atol=1e-11, err_msg=f"{op.name}: {text}"
            )
            compared += value.size
    assert compared, f"{op.name}: no text was compared"


def check_saves(op):
    """A write to a saved tensor stops backward, and a write to any other does not."""
    if not op.differentiable:
        return
    sample = next(s for s in draw(op) if all(array.size for array in s.inputs))
    asked = differentiable(op, sample)
    saved = set()
    for position, names in enumerate(op.saves):
        if op.variadic or asked[position]:
            saved |= set(names)
    for written in ("out", *op.inputs):
        leaves, inputs, plain = bound(op, sample.inputs, sample.arguments)
        out = op.apply(inputs, plain)
        if op.variadic and written != "out":
            continue  # the values of a list are kept without their versions
        target = out if written == "out" else leaves[op.inputs.index(written)]
        if op.view:
            target = out.detach() if written == "out" else target
            if saved:
                continue  # one buffer, one version
        storage = target.storage
        storage.version += 1
        storage.writer = "a test"
        stopped = ""
        try:
            backward(out, np.ones(out.shape, out.dtype))
        except KaelError as error:
            stopped = str(error)
        if written in saved:
            assert stopped, f"{op.name} says it saves {written} and does not"
            assert "inplace" in stopped, stopped
        else:
            assert not stopped, f"{op.name} saves {written} and does not say so: {stopped}"


def check_float32(op):
    """float32 operands give a float32 result (where it is floating) and float32 gradients."""
    for sample in draw(op):
        arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in sample.inputs]
        if not any(array.dtype.kind == "f" for array in arrays):
            continue
        if any(isinstance(value, np.dtype) for value in sample.arguments.values()):
            continue  # the dtype is what was asked for
        out, _, gradients = run(op, arrays, sample.arguments)
        assert out.dtype.kind != "f" or out.dtype == np.float32, f"{op.name}: {out.dtype}"
        wide, _, _ = run(op, sample.inputs, sample.arguments)
        scale = np.abs(wide.astype(float)).max(initial=1.0, where=np.isfinite(wide))
        np.testing.assert_allclose(out, wide, rtol=1e-3, atol=1e-3 * scale, err_msg=op.name)
        _, inputs, plain = bound(op, arrays, sample.arguments)
        result = op.apply(inputs, plain)
        if result.requires_grad:
            formulas_keep_float32(op, inputs, plain, result)
        for array, gradient in zip(arrays, gradients, strict=True):
            assert gradient is None or gradient.dtype == array.dtype, f"{op.name}: gradient"


def formulas_keep_float32(op, inputs, plain, result):
    """The formulas themselves stay in float32: no NumPy float64 scalar slips in."""
    node = result.grad_fn
    with np.errstate(all="ignore"):
        raw = node.apply(np.ones(result.shape, np.float32))
    floating = {tensor.dtype for tensor in inputs if tensor.dtype.kind != "b"}
    if floating != {np.dtype(np.float32)}:
        return  # integers beside float32 may be computed in more digits
    for gradient in raw:
        assert gradient is None or np.asarray(gradient).dtype == np.float32, (
            f"{op.name}: a formula widens float32 to {np.asarray(gradient).dtype}"
        )


def check_shapes(op):
    """An elementwise operation is sampled at 0-d and empty operands, and keeps their shape."""
    if op.batch != "elementwise":
        return
    samples = draw(op)
    for wanted in (lambda a: a.ndim == 0, lambda a: a.size == 0):
        assert any(any(map(wanted, s.inputs)) for s in samples), f"{op.name}: a shape is missing"
    for sample in samples:
        out, upstream, _ = run(op, sample.inputs, sample.arguments)
        assert type(out) is np.ndarray
        assert out.shape == np.broadcast_shapes(*(array.shape for array in sample.inputs)), op.name
        assert upstream is None or upstream.shape == out.shape


def check_batch(op):
    """The kernel on stacked operands with batch-arguments is the stack of the single results."""
    if op.batch is None:
        return
    compared = 0
    for sample in draw(op):
        _, inputs, plain = bound(op, sample.inputs, sample.arguments, requires=False)
        arrays = [tensor._array for tensor in inputs]
        shapes = [array.shape for array in arrays]
        moved = formulas_of(op, len(arrays)) if op.differentiable else [True] * len(arrays)
        if op.batch == "elementwise":
            moved = [array.dtype.kind == "f" or not op.differentiable for array in arrays]
        rows = [
            [array * factor if own and array.dtype.kind == "f" else array
             for array, own in zip(arrays, moved, strict=True)]
            for factor in (1.0, 0.99, 1.01)
        ]  # fmt: skip
        singles = np.stack([op.compute(row, plain) for row in rows])
        if op.batch == "elementwise":
            rank = max(map(len, shapes))
            stacked = [
                np.stack(column).reshape(3, *(1,) * (rank - len(shape)), *shape)
                for column, shape in zip(zip(*rows, strict=True), shapes, strict=True)
            ]
            together = op.compute(stacked, plain)
        else:
            arguments = op.batch(plain, shapes)
            if arguments is None:
                continue
            stacked = [
                np.stack(column) if own else column[0]
                for column, own in zip(zip(*rows, strict=True), moved, strict=True)
            ]
            together = op.compute(stacked, arguments)
        assert together.shape == singles.shape, f"{op.name}: {together.shape} {singles.shape}"
        np.testing.assert_allclose(together, singles, rtol=1e-12, atol=1e-13, err_msg=op.name)
        compared += singles.size
    assert compared, f"{op.name}: no batch was compared"


def check_analytic(op):
    """An analytic kernel's complex step gives the formula's gradient to the last digits."""
    if not op.analytic or not op.differentiable:
        return
    step = 1e-30
    compared = 0
    for sample in draw(op):
        _, upstream, gradients = run(op, sample.inputs, sample.arguments)
        if upstream is None:
            continue
        _, inputs, plain = bound(op, sample.inputs, sample.arguments, requires=False)
        for which, asked in enumerate(differentiable(op, sample)):
            if not asked:
                continue
            arrays = [
                np.array(t._array, complex) if t.dtype.kind == "f" else t._array for t in inputs
            ]
            slopes = np.zeros(sample.inputs[which].shape)
            for at in np.ndindex(slopes.shape):
                kept = arrays[which][at]
                arrays[which][at] = kept + 1j * step
                slopes[at] = (op.compute(arrays, plain).imag * upstream).sum() / step
                arrays[which][at] = kept
            np.testing.assert_allclose(
                gradients[which], slopes, rtol=1e-9, atol=1e-12, err_msg=op.name
            )
            compared += slopes.size
    assert compared, f"{op.name}: no complex step was compared"


def check_memory(op):
    """Only a view shares memory with its operand; nothing writes to an operand."""
    for sample in draw(op):
        arrays = [array.copy() for array in sample.inputs]
        out, _, gradients = run(op, arrays, sample.arguments)
        for array, given in zip(arrays, sample.inputs, strict=True):
            np.testing.assert_array_equal(array, given, err_msg=f"{op.name} wrote to an operand")
            assert op.view or not np.shares_memory(out, array), f"{op.name} returned its operand"
            for gradient in gradients:
                assert gradient is None or not np.shares_memory(gradient, array), op.name


def check_integers(op):
    """Integer and boolean operands give a supported dtype without history, or a clear error."""
    sample = next(s for s in draw(op) if all(array.size for array in s.inputs))
    for dtype in (np.int64, np.uint8, np.bool_):
        arrays = [
            (np.abs(array) + 1).astype(dtype) if array.dtype.kind == "f" else array
            for array in sample.inputs
        ]
        try:
            _, inputs, plain = bound(op, arrays, sample.arguments)
            out = op.apply(inputs, plain)
        except KaelError:
            continue  # anything else is a fault
        assert out.dtype in dtypes.SUPPORTED, f"{op.name}: {dtype.__name__} gives {out.dtype}"
        assert not out.requires_grad


def check_kink(op, at, cone=False):
    """The predicate is 0 at the point, and beside it tells the sides apart.

    `at` is the operands and arguments of a point on the kink; `cone`: there are no sides, as at the
    tip of a cone, and the predicate is a distance.
    """
    arrays, arguments = at
    arrays = [np.asarray(array) for array in arrays]

    def distances(offset):
        moved = [arrays[0] + offset, *arrays[1:]]
        _, inputs, plain = bound(op, moved, arguments, requires=False)
        found = op.kink(*(tensor._array for tensor in inputs), *plain)
        assert isinstance(found, tuple), op.name
        return [np.asarray(distance) for distance in found]

    offset = np.zeros(arrays[0].shape)
    offset.flat[0] = 1e-3
    here, above, below = distances(0.0 * offset), distances(offset), distances(-offset)
    zeros = [np.argwhere(distance == 0) for distance in here]
    assert any(len(found) for found in zeros), f"{op.name}: the predicate is not 0 at the kink"
    told = False
    for found, up, down in zip(zeros, above, below, strict=True):
        for place in map(tuple, found):
            if cone:
                told |= bool(up[place] != 0 and down[place] != 0)
            else:
                told |= bool(up[place] * down[place] < 0)
    assert told, f"{op.name}: the predicate does not tell the sides of the kink apart"
    assert op.at_kink, f"{op.name} has a kink and no convention"
