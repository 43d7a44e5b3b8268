from tests.hostile.campaign import hold


def test_model_files_with_flipped_bits_are_refused():
    hold("flippedbits", 300)
