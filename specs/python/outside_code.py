"""NumPy functions that kael did not run, with the gradients their authors claim."""

import numpy as np

import kael


def softmax_entropy_gradient(z):
    """dH/dz = -p (log p + H): the textbook form."""
    p = np.exp(z - z.max())
    p /= p.sum()
    return -p * (np.log(p) - np.sum(p * np.log(p)))


@kael.spec(
    z=[0.9, -0.4, 0.3],
    grad=softmax_entropy_gradient,
    tags=["outside", "information"],
    description="Entropy of a softmax, written in NumPy alone.",
    cases={"uniform": {"z": [1.0, 1.0, 1.0]}},
)
def softmax_entropy(z):
    p = np.exp(z - z.max())
    p /= p.sum()
    return -np.sum(p * np.log(p))


def quadratic_form_gradient(a, x):
    return np.outer(x, x), (a + a.T) @ x


@kael.spec(
    a=[[2.0, 0.5], [-1.0, 3.0]],
    x=[1.0, -2.0],
    grad=quadratic_form_gradient,
    tags=["outside", "linear-algebra"],
    description="x^T A x has gradient (A + A^T) x; 2 A x is right for a symmetric A only.",
)
def quadratic_form(a, x):
    return x @ a @ x


def circular_convolution_vjp(g, signal, kernel):
    """The adjoint of a circular convolution is a circular correlation."""
    spectrum = np.fft.fft(g)
    correlate = lambda other: np.fft.ifft(spectrum * np.conj(np.fft.fft(other))).real
    return correlate(kernel), correlate(signal)


@kael.spec(
    signal=[1.0, 2.0, -1.0, 0.5],
    kernel=[0.5, 0.25, 0.0, 0.25],
    vjp=circular_convolution_vjp,
    tags=["outside", "signal"],
    description="Circular convolution by FFT; the result is a vector, so the claim is a vjp.",
)
def circular_convolution(signal, kernel):
    return np.fft.ifft(np.fft.fft(signal) * np.fft.fft(kernel)).real
