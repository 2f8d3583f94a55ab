"""The training loop: Trainer, Parameter, Estimator, Criterion, Loss, Optimizer.

The public names are those of :mod:`harnesslab`; import them from there.
"""
