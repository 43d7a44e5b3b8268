"""The study of limits on memory, in its quick form."""

from studies import memorylimits


def test_what_is_over_the_limit_by_more_than_is_allowed_does_not_hold():
    def row(limit, peak):
        return memorylimits.Row("LaRankClassifier", "mnist", 20, limit, peak, 1.0, None, 1.0)

    assert row(50.0, 69.0).holds
    assert not row(50.0, 71.0).holds
    assert row(1000.0, 1099.0).holds
    assert not row(1000.0, 1101.0).holds
