#!/usr/bin/env python3
"""A small delegator over MCP that knows nothing of this project: plain MCP, standard library only, no private word.

It keeps its promises. With --broken it does what so many do: it waits for the end of the child's output rather than for
the child, ends nobody but the child itself, and calls everything a success that has a text.
"""
import json
import os
import signal
import subprocess
import sys
import threading
import time

BROKEN = "--broken" in sys.argv
DRAIN = 0.5  # seconds that pipes may still bring something after the child's exit
STAY = 1.0  # seconds that a child may stay after its last word
GRACE = 1.0  # seconds between asking and insisting
LONGEST = 1 << 20  # bytes of a record; a longer one is skipped
STDERR = 16 << 10  # bytes of stderr that are kept

TOOL = {
    "name": "ask_agent",
    "description": "Hands a task to a fresh agent and returns its answer.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What to do."},
            "workdir": {"type": "string", "description": "Where."},
        },
        "required": ["prompt"],
        "additionalProperties": False,
    },
}

writing = threading.Lock()
calls = {}  # request id -> Call


def say(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


class Call:
    def __init__(self, request, arguments):
        self.request = request
        self.arguments = arguments
        self.cancelled = threading.Event()
        self.message = None  # the last message of the assistant
        self.settled = threading.Event()  # the child said that it is done
        self.stderr = b""

    def run(self):
        try:
            ok, text = self.delegate()
        except Exception as error:  # one call's trouble is not the server's end
            ok, text = False, f"the agent could not be run: {error}"
        calls.pop(self.request, None)
        say({"id": self.request, "result": {"content": [{"type": "text", "text": text}], "isError": not ok}})

    def delegate(self):
        prompt = self.arguments.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            return False, "prompt is missing"
        child = subprocess.Popen(
            ["pi", "--mode", "json", "--no-session", "--no-extensions", "--no-skills", "-p"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.arguments.get("workdir"),
            start_new_session=not BROKEN,
        )
        threads = [
            threading.Thread(target=self.feed, args=(child.stdin, prompt), daemon=True),
            threading.Thread(target=self.records, args=(child.stdout,), daemon=True),
            threading.Thread(target=self.errors, args=(child.stderr,), daemon=True),
        ]
        for thread in threads:
            thread.start()
        if BROKEN:
            threads[1].join()
            code = child.wait()
        else:
            code = self.supervise(child, threads[1:])
        return self.outcome(code)

    def supervise(self, child, readers):
        """Waits for the child, not for its pipes, and leaves nobody of its group behind."""
        since = None
        while child.poll() is None:
            if since is None and self.settled.is_set():
                since = time.monotonic()
            stays = since is not None and time.monotonic() > since + STAY
            if stays or self.cancelled.is_set():
                self.end(child)
                break
            time.sleep(0.005)
        code = child.wait()
        until = time.monotonic() + DRAIN
        for reader in readers:
            reader.join(max(0.0, until - time.monotonic()))
        self.signal(child, signal.SIGKILL)
        for reader in readers:
            reader.join(DRAIN)
        return code

    def end(self, child):
        self.signal(child, signal.SIGTERM)
        try:
            child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.signal(child, signal.SIGKILL)

    @staticmethod
    def signal(child, number):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass

    @staticmethod
    def feed(stdin, prompt):
        try:
            stdin.write(prompt.encode())
            stdin.close()
        except BrokenPipeError:
            pass

    def records(self, stdout):
        rest = b""
        skipping = False
        while chunk := os.read(stdout.fileno(), 1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not skipping:
                    self.record(line)
                skipping = False
            if len(rest) > LONGEST:
                rest, skipping = b"", True
        if rest and not skipping:
            self.record(rest)

    def record(self, line):
        try:
            record = json.loads(line)
        except ValueError:
            return
        if not isinstance(record, dict):
            return
        message = record.get("message")
        if record.get("type") == "message_end" and isinstance(message, dict) and message.get("role") == "assistant":
            self.message = message
        if record.get("type") == "agent_settled":
            self.settled.set()

    def errors(self, stderr):
        while chunk := os.read(stderr.fileno(), 1 << 16):
            self.stderr = (self.stderr + chunk)[-STDERR:]

    def outcome(self, code):
        if self.cancelled.is_set():
            return False, "cancelled"
        message = self.message or {}
        blocks = message.get("content") or []
        text = "".join(block.get("text", "") for block in blocks if block.get("type") == "text")
        if text and (BROKEN or message.get("stopReason") == "stop"):
            return True, text
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = self.stderr.decode(errors="replace").strip()
        reason = message.get("errorMessage") or (f"it stopped with {message['stopReason']}" if message else "")
        return False, "\n".join(filter(None, [f"the agent gave no answer ({ended})", reason, last]))


def handle(message):
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        info = {"name": "ask-agent", "version": "0.3"}
        say({"id": request, "result": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        say({"id": request, "result": {"tools": [TOOL]}})
    elif method == "tools/call":
        call = calls[request] = Call(request, params.get("arguments") or {})
        threading.Thread(target=call.run, daemon=BROKEN).start()
    elif method == "notifications/cancelled":
        call = calls.get(params.get("requestId"))
        if call:
            call.cancelled.set()
    elif request is not None and method:
        say({"id": request, "error": {"code": -32601, "message": f"no method {method}"}})


for line in sys.stdin.buffer:
    try:
        handle(json.loads(line))
    except ValueError:
        print("a line that is no message", file=sys.stderr)
for call in list(calls.values()):
    call.cancelled.set()
