"""A disk without room."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(most=0):
    """The kernel refuses to write files of more bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
