"""
Runs programs one after the other in this process, which loads the libraries once: `all.py '[["FILE", {"MODEL": "..."}], ...]'`.
Prints a list with what each has printed last, `{"seen": ...}`, or `{"failed": "Traceback ..."}`.
"""
import contextlib
import io
import json
import os
import runpy
import sys
import traceback

outcomes = []
for file, environment in json.loads(sys.argv[1]):
    os.environ.update(environment)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(file, run_name="__main__")
        outcomes.append({"seen": json.loads(printed.getvalue().strip().split("\n")[-1])})
    except Exception:
        outcomes.append({"failed": traceback.format_exc()})
print(json.dumps(outcomes))
