"""Enrolment, history import, datasets, replay memory, training, evaluation, the gate, jobs."""
