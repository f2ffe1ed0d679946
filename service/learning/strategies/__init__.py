"""Learn arrow, memory: which windows of the past each strategy of the paper keeps for replay.

One file a strategy, all behind ``Strategy.select``, which sees labels only and answers with positions.
To add one, write its file and name it in ``catalogue.py``; the experiment and the service know it from there.

The paper's text, its printed pseudo-code and its published code disagree in places. What is built here is
the intent, with these corrections:

- Algorithm 2 (task update) computes ``diff`` as |M| - M, never positive while there is room; meant is
  M - |M|, and the condition is |M| < M.
- Algorithm 2 fills free places with a random part of a batch; as the rest of that batch then competes with
  it in one Memory Update over all of them, the draw changes nothing and is left out.
- The published code fills free places *with* replacement, so that some windows are held twice and others
  never offered, and drops the rest of the batch in which the memory becomes full. Here every window is
  offered once.
- Algorithm 4 (BAT-OCDM) takes M/(N-1) - M/N before it asks whether N ≥ 2, and so divides by nought at the
  first task; here the first task has all of the memory and there is nothing to shrink.
- Algorithm 5 (dataset-based OCDM) removes min(|Ω| - M, M) samples, too few for a task larger than 2 M, and
  adds to Ω a new task that is already in it; here it removes what is too much, |Ω| - M, from memory and task.
- The published code's target distribution is never initialised, and is summed for each sample where it
  should be for each label. Here p_i ∝ n_i^rho over the labels seen, uniform for rho = 0.
- The published code's list of which task each of OCDM's windows came from is not shortened with the windows,
  so that its figure of tasks in memory drifts from what is kept; here a window stays with its task.
- M/T rarely divides and ``round(M/T)`` each does not sum to M; ``shares`` does.
- The published task-based random memory draws with replacement, again at every shrinking; here without.
- The published reservoir lets in M + 1 windows before it starts to replace; here M.
- The macro F1 s = Σ f_1 lacks its 1/L (``metrics.macro``).
- F_T divides by s_lj, which may be nought; of a score of nought nothing is forgotten
  (``metrics.forgetting``). Nor does it lie in [-1, 1] as stated: a score that more than doubles goes below.
- "Finetune" is described as training from scratch on each task, but measured, and named, as training on
  from the last weights, which is what is done here.
- Cumulative has no limit of memory and starts from fresh weights at every task, as described.
"""
