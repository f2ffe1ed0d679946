"""Adam's step: torch's own, to the bit, without what torch loads for it."""

import subprocess
import sys

import torch

from service.learning.torch_trainer import Adam, Dropout, Module


def module() -> Module:
    torch.manual_seed(3)
    return Module((8, 16, 4), (5, 6, 1), dropout=Dropout())


def test_steps_are_those_of_torchs_adam_to_the_bit() -> None:
    ours, theirs = module(), module()
    mine, reference = (
        Adam(ours.parameters(), rate=1e-3),
        torch.optim.Adam(theirs.parameters(), lr=1e-3, fused=True),
    )
    for _ in range(20):
        inputs, history = torch.randn(32, 8), torch.randn(32, 4, 5)
        for trained in (ours, theirs):
            trained.eval()
            trained.zero_grad()
            trained(inputs, history).square().mean().backward()
        mine.step()
        reference.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


def test_training_does_not_load_torchs_compiler() -> None:
    learn = (
        "import sys, numpy as np\n"
        "from service.learning.windows import Samples\n"
        "from service.learning.torch_trainer import TrainingSpec, train\n"
        "rng = np.random.default_rng(1)\n"
        "samples = Samples(rng.random((64, 6), dtype=np.float32), rng.random((64, 3)) < 0.5)\n"
        "train(None, samples, spec=TrainingSpec(epochs=1), rng=rng)\n"
        "sys.exit('torch._dynamo' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", learn], check=False).returncode == 0
