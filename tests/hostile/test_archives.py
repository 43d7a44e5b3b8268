from tests.hostile.campaign import hold


def test_damaged_archives_are_refused_or_read():
    hold("archives", 300)
