"""Kills in the middle of saves and commands, a few of them."""

from tests.hostile.campaign import hold


def test_a_kill_leaves_the_old_or_the_new_file_and_no_debris():
    hold("kills", 5)
