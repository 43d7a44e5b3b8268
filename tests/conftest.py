import signal

from hypothesis import settings

# How long one example takes says more about the machine than about the code.
settings.register_profile("larank", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=3000)  # pytest --hypothesis-profile=thorough
settings.load_profile("larank")


def pytest_configure(config):
    """A shell starts background jobs with SIGINT ignored, which children inherit and Python keeps."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
