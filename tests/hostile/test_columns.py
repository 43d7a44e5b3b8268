from tests.hostile.campaign import hold


def test_damaged_files_in_columns_are_refused_or_read():
    hold("columns", 300)
