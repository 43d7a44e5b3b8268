from tests.hostile.campaign import hold


def test_damaged_tables_are_refused_or_read():
    hold("tables", 300)
