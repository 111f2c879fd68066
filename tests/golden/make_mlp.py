"""Makes `tests/golden/mlp/`: a two-layer perceptron with PyTorch's loss and gradients.

Run once, with PyTorch installed; the tests read only the arrays. What the tests compare is in
`test_mlp.py`.
"""

from pathlib import Path

import numpy as np
import torch

SEED = 20260
HERE = Path(__file__).parent / "mlp"


def make() -> dict[str, torch.Tensor]:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    inputs = torch.randn(6, 4, dtype=torch.float64)
    targets = torch.randint(0, 3, (6,))
    parameters = {
        "w1": torch.randn(4, 5, dtype=torch.float64),
        "b1": torch.randn(5, dtype=torch.float64),
        "w2": torch.randn(5, 3, dtype=torch.float64),
        "b2": torch.randn(3, dtype=torch.float64),
    }
    for parameter in parameters.values():
        parameter.requires_grad_()
    hidden = torch.tanh(inputs @ parameters["w1"] + parameters["b1"])
    scores = torch.log_softmax(hidden @ parameters["w2"] + parameters["b2"], dim=1)
    loss = -scores.gather(1, targets[:, None]).mean()
    loss.backward()
    gradients = {f"{name}_grad": parameter.grad for name, parameter in parameters.items()}
    return {"inputs": inputs, "targets": targets, "loss": loss, **parameters, **gradients}


def main() -> None:
    HERE.mkdir(exist_ok=True)
    for name, tensor in make().items():
        np.save(HERE / f"{name}.npy", tensor.detach().numpy())
    (HERE / "PROVENANCE").write_text(
        f"Made by make_mlp.py with PyTorch {torch.__version__}, seed {SEED}, float64.\n"
    )


if __name__ == "__main__":
    main()
