from tests.hostile.campaign import hold


def test_damaged_command_lines_end_with_a_status_and_one_line():
    hold("commands", 100)
