"""REST on FastAPI: one router per noun, errors as RFC 9457 problems."""
