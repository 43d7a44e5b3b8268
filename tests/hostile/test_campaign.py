"""The harness itself: what is planted is found, told apart and written down."""

import subprocess
import sys

import pytest

from tools.hostile.campaign import Attack, Campaign, Case

HARMLESS = Case("open('data').read()", {"data": b"12"})


def run(tmp_path, script, **options):
    """A campaign whose fourth case is the script, and what it reported."""

    def cases(random):
        for number in range(10**9):
            yield Case(script, {"data": b"\0planted"}) if number == 3 else HARMLESS

    said = list[str]()
    attack = Attack(cases, **{"is_documented": lambda error: False, "warm_up": "", "seconds": 0.5} | options)
    campaign = Campaign({"planted": attack}, tmp_path, cases=8, workers=1, report=said.append)
    assert campaign.run() == (not campaign.failures)
    tally = campaign.tallies["planted"]
    assert tally.cases == 8
    assert tally.accepted + tally.refused + sum(tally.failures.values()) == 8
    return tally, campaign, "\n".join(said)


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("crash", "import ctypes; ctypes.string_at(0)"),
        ("crash", "import os; os.abort()"),
        ("crash", "import os; os._exit(0)"),
        ("hang", "while True: pass"),
        ("hang", "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"),
        ("memory", "bytearray(80 << 20)"),
        ("exception", "[][1]"),
        ("exception", "raise SystemExit(0)"),
    ],
)
def test_what_is_planted_is_found_and_reproduced(tmp_path, kind, script):
    tally, campaign, said = run(tmp_path, script)
    assert tally.failures == {kind: 1}
    assert tally.accepted == 7
    assert f"1 {kind}" in campaign.table()
    (path,) = campaign.failures.values()
    assert str(path) in said
    assert script in said
    if "xit" not in script:
        assert "\nconfirmed" in said
        assert subprocess.run([sys.executable, path], capture_output=True, cwd=tmp_path).returncode
    assert "AHBsYW50ZWQ=" in path.read_text()  # the file, in base64


def test_memory_that_cases_keep_is_a_leak(tmp_path):
    script = "import builtins; vars(builtins).setdefault('kept', []).append(bytearray(60 << 20))"
    attack = Attack(lambda random: iter(lambda: Case(script), None), warm_up="")
    campaign = Campaign({"planted": attack}, tmp_path, cases=7, workers=1, report=str)
    campaign.run()
    assert campaign.tallies["planted"].failures == {"leak": 1}


def test_a_documented_exception_is_a_refusal(tmp_path):
    tally, campaign, _ = run(tmp_path, "float('x')", is_documented=lambda error: isinstance(error, ValueError))
    assert tally.refused == 1
    assert not campaign.failures


def test_the_same_defect_is_reported_once(tmp_path):
    attack = Attack(lambda random: iter(lambda: Case("[][1]"), None), warm_up="")
    campaign = Campaign({"planted": attack}, tmp_path, cases=5, workers=2, report=str)
    campaign.run()
    assert campaign.tallies["planted"].failures == {"exception": 5}
    assert len(campaign.failures) == 1


def test_a_seed_makes_the_same_cases(tmp_path):
    def files(seed):
        def cases(random):
            while True:
                yield Case(f"open({str(tmp_path / 'made')!r}, 'a').write('{random.random()} ')")

        campaign = Campaign({"planted": Attack(cases, warm_up="")}, tmp_path, seed=seed, cases=5, workers=1)
        assert campaign.run()
        made = (tmp_path / "made").read_text()
        (tmp_path / "made").unlink()
        return made

    assert files(1) == files(1) != files(2)


def test_an_attack_that_cannot_make_its_cases_is_told_from_a_crash(tmp_path):
    def cases(random):
        yield HARMLESS
        yield HARMLESS
        raise ValueError("no more")

    campaign = Campaign({"planted": Attack(cases, warm_up="")}, tmp_path, cases=3, workers=1, report=str)
    assert not campaign.run()
    assert campaign.tallies["planted"].failures == {"broken attack": 1}
