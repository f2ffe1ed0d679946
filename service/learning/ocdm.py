"""The exact greedy Memory Update of OCDM, fast because equal label sets share a score.

In the paper's symbols: a memory Ω with label counts c (n of them in all) has the distribution p_Ω = c / n,
and MU removes, one at a time, the sample whose absence brings KL(p_Ω ‖ p) closest to the target p.

The divergence after a removal depends only on the removed label set y, so samples are grouped by label set.
With f_i(v) = v (log v - log p_i), F = Σ f_i(c_i) and g_i = f_i(c_i) - f_i(c_i - 1), removing y leaves
(F - y·g) / (n - |y|) - log(n - |y|): one sum over the groups' labels for each removal, however many samples
stand behind them.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.bool_]
Reals = NDArray[np.float64]

TIE: Final = 1e-11  # scores closer than this are equal; rounding may not decide what is remembered


def keep(labels: Labels, size: int, *, target: Reals | None = None) -> NDArray[np.intp]:
    """Return the sorted indices of the ``size`` samples that the greedy Memory Update keeps.

    ``labels`` is samples by labels, ``target`` the wished share of each label (uniform by default, scaled
    to sum to one). Equal scores remove the lowest index, and a removal that would leave no label at all
    comes last, so samples without labels go before the last labelled one.
    """
    return keep_in_batches(labels, size, batch=max(len(labels), 1), target=target)


def keep_in_batches(
    labels: Labels, size: int, *, held: int = 0, batch: int = 64, target: Reals | None = None
) -> NDArray[np.intp]:
    """Return what OCDM's task update keeps when samples arrive ``batch`` at a time, in the order given.

    The first ``held`` samples are the memory before the first batch. The paper fills free places with a
    random part of a batch and offers the rest; as both then compete in the same Ω, the draw cannot matter.
    """
    if labels.ndim != 2:  # noqa: PLR2004
        raise ValueError("Labels must be a table of samples by labels.")
    if size < 0 or batch < 1:
        raise ValueError("A memory cannot hold fewer than no samples, and a batch holds at least one.")
    frequency = labels.sum(axis=0)
    wishes = np.log(np.where(frequency > 0, _normalised(target, frequency), 1.0))
    if len(labels) <= size:
        return np.arange(len(labels))
    from service.learning.numba_kernels import greedy_remove  # noqa: PLC0415 - numba is loaded only where memories are updated

    sets, group = _label_sets(labels)
    ends = np.concatenate([[0], np.cumsum(sets.sum(axis=1))])
    starts = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(sets)))])
    members = np.argsort(group, kind="stable")
    heads: NDArray[np.int64] = greedy_remove(
        group, np.nonzero(sets)[1], ends, members, starts[:-1], wishes, held, batch, size, TIE
    )
    left = [members[head:end] for head, end in zip(heads.tolist(), starts[1:].tolist(), strict=True)]
    return np.sort(np.concatenate(left))


def power_target(frequency: NDArray[np.integer], rho: float) -> Reals:
    """Return the paper's target p_i ∝ n_i^rho: rho = 0 wishes all labels equal, rho = 1 as they come.

    A label never seen has no share unless rho = 0, where it is wished for like any other.
    """
    if rho < 0:
        raise ValueError("The allocation power must not be negative.")
    weights = np.asarray(frequency, dtype=np.float64) ** rho
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / max(len(weights), 1))


def divergence(labels: Labels, target: Reals | None = None) -> float:
    """Return KL(p_Ω ‖ p) of the samples' label distribution; infinite where there is no label at all."""
    counts = labels.sum(axis=0)
    wished = _normalised(target, counts)
    present = counts > 0
    if not present.any():
        return float("inf")
    share = counts[present] / counts.sum()
    return float(np.sum(share * np.log(share / wished[present])))


def _label_sets(labels: Labels) -> tuple[Labels, NDArray[np.int64]]:
    """Return the distinct label sets and each sample's place among them."""
    if labels.shape[1] == 0:  # samples that have no labels to differ in
        return labels[:1], np.zeros(len(labels), dtype=np.int64)
    packed = np.packbits(labels, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return labels[first], group.astype(np.int64)


def _normalised(target: Reals | None, frequency: NDArray[np.integer]) -> Reals:
    if target is None:
        return np.full(len(frequency), 1 / max(len(frequency), 1))
    wished = np.asarray(target, dtype=np.float64)
    if wished.shape != frequency.shape or not np.all(np.isfinite(wished)) or np.any(wished < 0):
        raise ValueError("The target needs one finite share of at least 0 for each label.")
    if np.any((wished == 0) & (frequency > 0)):
        raise ValueError("The target gives no share to a label that is present; its divergence is infinite.")
    return wished / wished.sum() if wished.sum() > 0 else wished
