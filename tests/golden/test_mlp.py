"""A whole model against PyTorch's numbers; the arrays come from `make_mlp.py`."""

from pathlib import Path

import numpy as np

import kael

FIXTURE = Path(__file__).parent / "mlp"
PARAMETERS = ("w1", "b1", "w2", "b2")


def read(name):
    return np.load(FIXTURE / f"{name}.npy")


def replay():
    """The loss and the parameters after one backward."""
    w1, b1, w2, b2 = (kael.tensor(read(name), requires_grad=True) for name in PARAMETERS)
    inputs, targets = kael.tensor(read("inputs")), kael.tensor(read("targets"))
    hidden = kael.tanh(inputs @ w1 + b1)
    scores = kael.log_softmax(hidden @ w2 + b2, dim=1)
    loss = -kael.gather(scores, 1, targets.reshape(6, 1)).mean()
    loss.backward()
    return loss, dict(zip(PARAMETERS, (w1, b1, w2, b2), strict=True))


class TestTwoLayerPerceptronMatchesPyTorch:
    def test_loss(self):
        loss, _ = replay()
        assert loss.shape == ()
        assert abs(loss.item() - read("loss").item()) <= 1e-12

    def test_gradients(self):
        _, parameters = replay()
        for name, parameter in parameters.items():
            np.testing.assert_allclose(
                parameter.grad.numpy(), read(f"{name}_grad"), rtol=1e-6, atol=1e-12, err_msg=name
            )
