"""Reused memory: an array that somebody can see is never handed out again."""

from __future__ import annotations

import gc
import threading

import numpy as np

from kael.kernels import buffers

LARGE = 1 << 19  # float64 entries of 4 MiB, the smallest that are kept
FLOAT = np.dtype(np.float64)


def test_small_arrays_are_plain() -> None:
    assert buffers.empty((4,), FLOAT).base is None


def test_memory_is_used_again_only_when_the_last_view_is_gone() -> None:
    buffers.clear()
    first = buffers.empty((LARGE,), FLOAT)
    address = first.ctypes.data
    view = first[10:].reshape(-1, 1)[::2]
    raw = memoryview(view)
    del first
    assert buffers.empty((LARGE,), FLOAT).ctypes.data != address
    buffers.clear()
    del view
    gc.collect()
    assert buffers.idle_bytes() == 0
    raw.release()
    del raw
    gc.collect()
    assert buffers.idle_bytes() == LARGE * 8
    assert buffers.empty((2, LARGE // 2), FLOAT).ctypes.data == address


def test_arrays_are_aligned_writable_and_of_the_asked_shape() -> None:
    out = buffers.empty((3, LARGE), np.dtype(np.float32))
    assert (out.shape, out.dtype, out.ctypes.data % 64) == ((3, LARGE), np.float32, 0)
    assert out.flags.writeable
    assert out.flags.c_contiguous
    assert not buffers.zeros((LARGE,), FLOAT).any()


def test_copy_shares_nothing() -> None:
    for x in (np.arange(6.0).reshape(2, 3).T, np.arange(2.0 * LARGE).reshape(2, LARGE).T):
        out = buffers.copy(x)
        np.testing.assert_array_equal(out, x)
        assert not np.shares_memory(out, x)
        assert out.flags.c_contiguous


def test_idle_memory_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    buffers.clear()
    monkeypatch.setattr(buffers, "IDLE_LIMIT_BYTES", 3 * LARGE * 8)
    alive = [buffers.empty((LARGE + k,), FLOAT) for k in range(6)]
    alive.clear()
    gc.collect()
    assert 0 < buffers.idle_bytes() <= 3 * LARGE * 8
    buffers.clear()


def test_apply_promotes_as_numpy_does() -> None:
    single = np.ones(2 * LARGE, np.float32)
    for operands in ((single, 2.5), (single, single.astype(float)), (single, np.float64(2)),
                     (single, True), (single, 3)):  # fmt: skip
        want = np.multiply(*operands)
        out = buffers.apply(np.multiply, *operands)
        assert out.dtype == want.dtype
        np.testing.assert_array_equal(out, want)
    compared = buffers.apply(np.greater, np.ones((4 * LARGE, 1)), np.zeros((1, 2)))
    assert (compared.dtype, compared.shape) == (bool, (4 * LARGE, 2))


def test_threads_never_share_a_live_buffer() -> None:
    faults = []

    def work(mark: int) -> None:
        for _ in range(50):
            out = buffers.empty((LARGE,), FLOAT)
            out.fill(mark)
            if not (out == mark).all():
                faults.append(mark)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert faults == []
