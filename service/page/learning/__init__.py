"""The learning page: enrolment, training jobs, model versions, replay memory and live accuracy."""

from service.page.learning.page import learning

__all__ = ["learning"]
