"""Rows of kernel values under a byte budget: those used last stay, with the values that were put in."""

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions import hooks

EXAMPLES = 12
ROW = 8 * EXAMPLES  # bytes


class LastUsed:
    """What a cache holds, by its definition: the values of examples in the order in which they were last used."""

    def __init__(self, room):
        self.room, self.rows = room, OrderedDict()

    def find(self, example):
        if example in self.rows:
            self.rows.move_to_end(example)
        return self.rows.get(example)

    def insert(self, example, values):
        self.rows.pop(example, None)
        if len(self.rows) == self.room:
            self.rows.popitem(last=False)
        self.rows[example] = values

    def narrow(self, kept):
        number = {example: n for n, example in enumerate(kept)}
        rows = self.rows.items()
        self.rows = OrderedDict((number[e], [row[k] for k in kept]) for e, row in rows if e in number)


uses = st.lists(st.tuples(st.sampled_from(["use", "use", "use", "insert", "forget"]), st.integers(0, 11)), max_size=60)


@given(uses, uses, st.integers(0, 7), st.integers(1, 3), st.sets(st.integers(0, 11), min_size=3))
def test_a_cache_holds_the_rows_used_last(before, after, room, in_use, kept):
    cache, model = hooks.RowCache(EXAMPLES, room * ROW, in_use), LastUsed(max(room, in_use))
    fresh = iter(np.arange(1e6))

    def go(events, examples):
        for event, example in events:
            example %= examples
            values = [next(fresh) for _ in range(examples)]
            if event == "forget":
                cache.forget(example)
                model.rows.pop(example, None)
            if event == "use":
                found = cache.find(example, examples)
                assert found == model.find(example)
            if event == "insert" or (event == "use" and found is None):
                cache.insert(example, np.array(values))
                model.insert(example, values)
            assert [cache.has(e) for e in range(examples)] == [e in model.rows for e in range(examples)]
            assert cache.rows == len(model.rows)

    go(before, EXAMPLES)
    kept = sorted(kept)
    cache.narrow(np.array(kept, np.int32).tolist())
    model.narrow(kept)
    assert [cache.has(e) for e in range(len(kept))] == [e in model.rows for e in range(len(kept))]
    model.room = max(room * (EXAMPLES // len(kept)), in_use)
    go(after, len(kept))
    for example in list(model.rows):
        assert cache.find(example, len(kept)) == model.rows[example]


@pytest.mark.parametrize("room", [16, 64, 200])
def test_rows_that_share_a_slab_are_as_many_as_the_budget_has_room_for(room):
    cache = hooks.RowCache(300, room * 300 * 8, 1)
    for example in range(300):
        cache.insert(example, np.full(300, float(example)))
    assert cache.rows == room // (room // 16) * (room // 16)
    assert cache.bytes <= room * 300 * 8
    for example in range(300 - cache.rows, 300):
        assert cache.find(example, 300) == [float(example)] * 300


def test_rows_between_members_never_take_more_than_their_limit():
    values = np.random.default_rng(0).normal(size=(200, 200))
    K, rows = values + values.T, hooks.Gram(1)
    for member in range(40):
        rows.add(member, K[member])
    limit = rows.bytes
    assert rows.stay_within(limit, -1)
    for member in range(40, 200):
        rows.add(member, K[member])
        assert rows.bytes <= limit
        assert rows.find(member, 200) == K[member].tolist()
    assert 20 < rows.resident < 60
    for member in range(200):
        assert rows.find(member, 200) in (None, K[member].tolist())
