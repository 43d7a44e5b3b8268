"""How pytest runs the suite: profiles of hypothesis, and Ctrl-C."""

import signal

from hypothesis import HealthCheck, settings

from properties import GATE_EXAMPLES

# The time of one example depends on the machine, so there is no deadline. How many draws a strategy filters out depends
# on the seed, and derandomized tests would fail for it always or never.
IGNORED = [HealthCheck.too_slow, HealthCheck.filter_too_much]
FOR_ALL = {"deadline": None, "print_blob": True, "suppress_health_check": IGNORED}
settings.register_profile("gate", derandomize=True, max_examples=GATE_EXAMPLES, **FOR_ALL)
settings.register_profile("nightly", max_examples=1000, **FOR_ALL)
settings.load_profile("gate")  # pytest --hypothesis-profile=nightly loads the other one


def pytest_configure(config):
    """A shell starts background jobs with SIGINT ignored, which children inherit and Python keeps."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
