"""Learn arrow, memory: the exact greedy Memory Update of OCDM, fast because equal label sets share a score.

In the paper's symbols: a memory Ω with label counts c (n of them in all) has the distribution p_Ω = c / n,
and MU removes, one at a time, the sample whose absence brings KL(p_Ω ‖ p) closest to the target p.

The divergence after a removal depends only on the removed label set y, so samples are grouped by label set.
With f_i(v) = v (log v - log p_i), F = Σ f_i(c_i) and g_i = f_i(c_i) - f_i(c_i - 1), removing y leaves
(F - y·g) / (n - |y|) - log(n - |y|): one matrix-vector product over the groups for each removal, however
many samples stand behind them.
"""

from collections.abc import Iterable
from itertools import pairwise
from math import fsum, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.bool_]
Reals = NDArray[np.float64]

TIE: Final = 1e-11  # scores closer than this are equal; rounding may not decide what is remembered
_SUNK: Final = -1e200  # below any sum a group with members can have


def keep(labels: Labels, size: int, *, target: Reals | None = None) -> NDArray[np.intp]:
    """Return the sorted indices of the ``size`` samples that the greedy Memory Update keeps.

    ``labels`` is samples by labels, ``target`` the wished share of each label (uniform by default, scaled
    to sum to one). Equal scores remove the lowest index, and a removal that would leave no label at all
    comes last, so samples without labels go before the last labelled one.
    """
    pool = Pool(labels, target=target)
    pool.add(range(len(labels)))
    pool.shrink(size)
    return pool.members()


def keep_in_batches(
    labels: Labels, size: int, *, held: int = 0, batch: int = 64, target: Reals | None = None
) -> NDArray[np.intp]:
    """Return what OCDM's task update keeps when samples arrive ``batch`` at a time, in the order given.

    The first ``held`` samples are the memory before the first batch. The paper fills free places with a
    random part of a batch and offers the rest; as both then compete in the same Ω, the draw cannot matter.
    """
    if batch < 1:
        raise ValueError("A batch holds at least one sample.")
    pool = Pool(labels, target=target)
    pool.add(range(held))
    pool.shrink(size)
    for start in range(held, len(labels), batch):
        pool.add(range(start, min(start + batch, len(labels))))
        pool.shrink(size)
    return pool.members()


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


class Pool:
    """Samples that compete for a place, grouped by label set; the greedy takes them out one by one."""

    def __init__(self, labels: Labels, *, target: Reals | None = None) -> None:
        if labels.ndim != 2:  # noqa: PLR2004
            raise ValueError("Labels must be a table of samples by labels.")
        frequency = labels.sum(axis=0)
        wished = _normalised(target, frequency)
        sets, group = _label_sets(labels)
        self._group: list[int] = group.tolist()
        self._names: list[list[int]] = [np.flatnonzero(row).tolist() for row in sets]
        self._members: list[list[int]] = [[] for _ in self._names]
        self._heads = [0] * len(self._names)
        # One row a group, narrow sets first; the last column sinks the score of a group without members.
        self._rows = np.column_stack([sets, np.ones(len(sets))])
        widths, self._starts = np.unique(sets.sum(axis=1), return_index=True)
        self._widths: list[int] = widths.tolist()
        self._spans = [slice(a, b) for a, b in pairwise([*self._starts.tolist(), len(sets)])]
        # v log v and its steps for every count a label can have, 1 / v and log v for every total.
        values = np.arange(int(frequency.sum()) + 1, dtype=np.float64)
        logs = np.log(np.maximum(values, 1))
        self._products: list[float] = (values * logs)[: int(frequency.max(initial=0)) + 1].tolist()
        self._steps: list[float] = np.diff(self._products, prepend=0.0).tolist()
        self._inverses: list[float] = [0.0, *(1 / values[1:]).tolist()]
        self._logs: list[float] = [-inf, *logs[1:].tolist()]  # leaving no label at all scores infinity
        self._wishes: list[float] = np.log(np.where(frequency > 0, wished, 1.0)).tolist()
        self._counts = [0] * labels.shape[1]

    def __len__(self) -> int:
        return sum(map(len, self._members)) - sum(self._heads)

    def members(self) -> NDArray[np.intp]:
        """Return the sorted indices of the samples still in the pool."""
        left = (members[head:] for members, head in zip(self._members, self._heads, strict=True))
        return np.sort(np.array([index for part in left for index in part], dtype=np.intp))

    def add(self, indices: Iterable[int]) -> None:
        """Let these samples in; each at most once, and in ascending order over all calls."""
        for index in indices:
            group = self._group[index]
            self._members[group].append(index)
            self._rows[group, -1] = 0.0
            for label in self._names[group]:
                self._counts[label] += 1

    def shrink(self, size: int) -> None:
        """Take samples out by Memory Update until at most ``size`` are left."""
        if size < 0:
            raise ValueError("A memory cannot hold fewer than no samples.")
        counts, products, steps, wishes = self._counts, self._products, self._steps, self._wishes
        wished = list(zip(counts, wishes, strict=True))
        parts = [products[count] - count * wish for count, wish in wished]
        gains = np.array([*(steps[count] - wish for count, wish in wished), 2 * _SUNK])
        total = sum(counts)
        for _ in range(len(self) - size):
            group = self._worst(self._rows.dot(gains), fsum(parts), total)
            names = self._names[group]
            total -= len(names)
            for label in names:
                count = counts[label] = counts[label] - 1
                parts[label] = products[count] - count * wishes[label]
                gains[label] = steps[count] - wishes[label]
            self._heads[group] += 1
            if self._heads[group] == len(self._members[group]):
                self._rows[group, -1] = 1.0

    def _worst(self, sums: Reals, whole: float, total: int) -> int:
        """Return the group that loses a sample: ``sums`` are its y·g, ``whole`` is F and ``total`` is n."""
        tops: list[float] = np.maximum.reduceat(sums, self._starts).tolist()
        inverses, logs = self._inverses, self._logs
        classes = [
            ((whole - top) * inverses[total - width] - logs[total - width], top, total - width, span)
            for top, width, span in zip(tops, self._widths, self._spans, strict=True)
            if top > _SUNK
        ]
        best = min(classes)[0]
        if best == inf:
            return self._oldest((sums > _SUNK).nonzero()[0].tolist())
        tied: list[int] = []
        for score, top, left, span in classes:
            if score <= best + TIE:
                (rows,) = (sums[span] >= top - (best + TIE - score) * left).nonzero()
                tied += (rows + span.start).tolist()
        return tied[0] if len(tied) == 1 else self._oldest(tied)

    def _oldest(self, groups: list[int]) -> int:
        """Return the group whose next sample has the lowest index."""
        return min(groups, key=lambda group: self._members[group][self._heads[group]])


def _label_sets(labels: Labels) -> tuple[Labels, NDArray[np.intp]]:
    """Return the distinct label sets, narrow ones first, and each sample's place among them."""
    if labels.size == 0:  # no samples, or samples that have no labels to differ in
        return labels[:1], np.zeros(len(labels), dtype=np.intp)
    packed = np.packbits(labels, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(labels[first].sum(axis=1), kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return labels[first[order]], place[group]


def _normalised(target: Reals | None, frequency: NDArray[np.integer]) -> Reals:
    if target is None:
        return np.full(len(frequency), 1 / max(len(frequency), 1))
    wished = np.asarray(target, dtype=np.float64)
    if wished.shape != frequency.shape or not np.all(np.isfinite(wished)) or np.any(wished < 0):
        raise ValueError("The target needs one finite share of at least 0 for each label.")
    if np.any((wished == 0) & (frequency > 0)):
        raise ValueError("The target gives no share to a label that is present; its divergence is infinite.")
    return wished / wished.sum() if wished.sum() > 0 else wished
