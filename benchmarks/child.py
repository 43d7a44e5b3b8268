"""The measured process, started by `benchmarks.measure` as `python -m benchmarks.child REQUEST`.

REQUEST is a JSON object: `tasks` is a module, `task` a function in it, `answer` the file its answer goes to.
The function gets the whole request and returns what JSON can hold.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path


def main() -> None:
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # what was reached is measured by the parent
    task = getattr(importlib.import_module(request["tasks"]), request["task"])
    Path(request["answer"]).write_text(json.dumps(task(request)))


if __name__ == "__main__":
    main()
