#!/usr/bin/env python3
"""One request in, one outcome out: a delegator that is a shell command, driven by the suite.

The suite starts this for each call, with the request as one JSON object on standard input; what is printed is the outcome. An abort
comes as SIGTERM, and is passed on. The first argument is the program; here it is the reference, `delegate`.
"""
import json
import signal
import subprocess
import sys

request = json.load(sys.stdin)
command = [sys.argv[1], "run", "--json", "--quiet"]
for option in ("profile", "cwd", "model"):
    if option in request:
        command += [f"--{option}", str(request[option])]
# The task goes to standard input: an argument may have 128 KiB at most.
child = subprocess.Popen([*command, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
printed, errors = child.communicate(str(request.get("task", "")).encode())
try:
    outcome = json.loads(printed)
except ValueError:
    # Refused before anything was started: the reason stands on standard error.
    words = {2: "refused", 3: "cancelled", 4: "timeout", -signal.SIGTERM: "cancelled"}
    outcome = {"ok": False, "outcome": words.get(child.returncode, "failed"), "error": errors.decode(errors="replace")}
outcome["text"] = outcome.get("answer") or outcome.get("error") or errors.decode(errors="replace")
print(json.dumps(outcome))
