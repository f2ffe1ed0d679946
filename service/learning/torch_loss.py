"""Learn arrow, training: what the network is punished for."""

from torch import Tensor
from torch.nn import functional


def focal_loss(logits: Tensor, labels: Tensor, *, alpha: float, gamma: float) -> Tensor:
    """Return each label's weighted focal loss: alpha weighs positives, gamma plays down what is already sure.

    In the paper's symbols -alpha (1-p)^gamma y log p - (1-alpha) p^gamma (1-y) log(1-p), on logits: log p
    and log(1-p) come from log-sigmoid, so that neither is ever infinite, nor their gradients.
    """
    log_yes, log_no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    positive = alpha * (gamma * log_no).exp() * log_yes
    negative = (1 - alpha) * (gamma * log_yes).exp() * log_no
    return -(labels * positive + (1 - labels) * negative)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return each label's log loss, whose probabilities need little correction."""
    return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
