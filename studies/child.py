"""The measured process, started by `studies.measure` as `python -m studies.child REQUEST`.

REQUEST is a JSON object: `tasks` is a module, `task` a function in it, `answer` the file its answer goes to.
The function gets the whole request and returns what JSON can hold.

The interpreter may be one with another version of larank: what runs here takes nothing but public names from it.
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
