"""How pytest runs the suite: profiles of hypothesis, and Ctrl-C."""

import signal

from hypothesis import settings

# The time of one example depends on the machine, so no example has a deadline.
settings.register_profile("gate", deadline=None, derandomize=True, max_examples=30, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("gate")  # pytest --hypothesis-profile=nightly loads the other one


def pytest_configure(config):
    """A shell starts background jobs with SIGINT ignored, which children inherit and Python keeps."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
