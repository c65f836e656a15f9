#!/usr/bin/env python3
"""A small delegator as an MCP server on stdio, in Python's standard library alone.

It works, and it has two faults that nearly every first delegator has; docs/tutorial.md finds them.
"""
import json
import os
import subprocess
import sys
import threading

# Where Pi is. A delegator that looks it up on PATH needs no such variable.
PI = os.environ.get("TINY_PI", "/opt/pi/bin/pi")

TOOLS = [
    {
        "name": "list_agents",
        "description": "Names the agents that ask_agent knows.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "ask_agent",
        "description": "Gives a task to a fresh Pi and returns its answer.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "agent": {"type": "string", "enum": ["scout", "worker"]},
                "prompt": {"type": "string"},
                "directory": {"type": "string"},
            },
            "required": ["agent", "prompt"],
            "additionalProperties": False,
        },
    },
]

writing = threading.Lock()


def say(message):
    with writing:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def result(request, status, answer):
    text = answer if status == "done" else f"The agent failed: {answer}"
    say({
        "id": request,
        "result": {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"status": status, "answer": answer},
            "isError": status != "done",
        },
    })


def ask_agent(request, arguments):
    try:
        child = subprocess.Popen(
            [PI, "--mode", "json", "--no-session", "-p", arguments["prompt"]],
            cwd=arguments.get("directory"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        # Fault 1: this returns when *everybody* who holds the pipes has let go, not when the child has ended.
        # Fault 2: whoever else the child started is left running.
        out, err = child.communicate()
    except OSError as error:
        return result(request, "failed", str(error))
    message = {}
    for line in out.split(b"\n"):
        record = json.loads(line) if line else {}
        if record.get("type") == "message_end" and record["message"]["role"] == "assistant":
            message = record["message"]
    answer = "".join(block.get("text", "") for block in message.get("content", []))
    if child.returncode == 0 and answer and message.get("stopReason") == "stop":
        return result(request, "done", answer)
    why = message.get("errorMessage") or err.decode(errors="replace") or "no answer"
    result(request, "failed", f"{why} (exit code {child.returncode})")


def call(request, params):
    name, arguments = params["name"], params["arguments"]
    if name == "list_agents":
        return result(request, "done", "scout, worker")
    if name != "ask_agent" or "agent" not in arguments or not arguments.get("prompt"):
        return say({"id": request, "error": {"code": -32602, "message": f"no tool {name} with {list(arguments)}"}})
    # Each call in a thread of its own, so that several can run at once.
    threading.Thread(target=ask_agent, args=(request, arguments), daemon=True).start()


for line in sys.stdin:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        info = {"name": "tiny", "version": "0.1"}
        say({"id": request, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        say({"id": request, "result": {"tools": TOOLS}})
    elif method == "tools/call":
        call(request, message["params"])
    elif request is not None:
        say({"id": request, "error": {"code": -32601, "message": f"no method {method}"}})
