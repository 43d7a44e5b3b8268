"""The command `python -m tools.hostile`: hostile cases against the library, for so many seconds or cases."""

import argparse
import ctypes
import os
import sys
from pathlib import Path

# One thread and one arena per child: the children share the cores, and each further arena asks for 64 MB of addresses.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", MALLOC_ARENA_MAX="1")
ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # where attacks find what tests share, as pytest does

from tools.hostile.campaign import Campaign, registered  # noqa: E402


def main() -> int:
    attacks = registered()
    parser = argparse.ArgumentParser(prog="python -m tools.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long all attacks together may take")
    parser.add_argument("--cases", type=int, help="how many cases of each other attack")
    parser.add_argument(
        "--attack",
        action="append",
        metavar="NAME[:CASES]",
        help=f"an attack, and how many cases of it; one of {', '.join(attacks)}. By default all, in turn",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="by default one per core")
    parser.add_argument("--directory", type=Path, default=Path("build/hostile"), help="where reproducers go")
    options = parser.parse_args()
    named = [word.partition(":") for word in options.attack or attacks]
    if unknown := {name for name, _, _ in named} - {*attacks}:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; the attacks are {', '.join(attacks)}")
    chosen = {name: attacks[name] for name, _, _ in named}
    cases = {name: int(number) if number else options.cases for name, _, number in named}
    sys.stdout.reconfigure(line_buffering=True)
    print(f"seed {options.seed}, {options.workers} workers, attacks: {', '.join(chosen)}")
    campaign = Campaign(chosen, options.directory, options.seed, options.seconds, cases, options.workers)
    try:
        campaign.run()
    except KeyboardInterrupt:
        print("interrupted")
    print(campaign.table())
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
