from tests.hostile.campaign import hold


def test_damaged_universes_and_stories_are_refused_or_read():
    hold("texts", 300)
