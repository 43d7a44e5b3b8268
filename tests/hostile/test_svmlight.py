from tests.hostile.campaign import hold


def test_damaged_svmlight_files_are_refused_or_read():
    hold("svmlight", 300)
