"""Drives a headless Chromium over the DevTools protocol, through a pipe and without another library."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The protocol reads messages from file 3 and writes them to file 4, each ended by a zero byte.
LAUNCH = """import os, sys
reads, writes, *command = sys.argv[1:]
os.dup2(int(reads), 3)
os.dup2(int(writes), 4)
os.execv(command[0], command)"""
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
    "about:blank",
)


def find():
    """The path of a Chromium; None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def above_ten(file):
    """The same file under a number that is not one of the protocol's."""
    number = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(file)
    return number


class Chromium:
    """A browser with one tab. Use it with ``with``: it ends with the context."""

    def __enter__(self):
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
            reads, self._sent = map(above_ten, os.pipe())
            self._answers, writes = map(above_ten, os.pipe())
            stack.callback(os.close, self._sent)
            stack.callback(os.close, self._answers)
            command = [find(), f"--user-data-dir={folder}", *OPTIONS]
            process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, str(reads), str(writes), *command],
                pass_fds=(reads, writes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait, timeout=30)
            stack.callback(process.terminate)
            os.close(reads)
            os.close(writes)
            self._rest, self._number, self._session, self.events = b"", 0, None, []
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
                "sessionId"
            ]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def call(self, method, **parameters):
        """The result of a method of the protocol; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._sent, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, path, *, width=1280, height=900, dark=False, media="screen", scale=1):
        """Opens a file and waits until it is loaded; what happened before is forgotten."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        self.events.clear()
        answer = self.call("Page.navigate", url=Path(path).resolve().as_uri())
        assert "errorText" not in answer, answer["errorText"]
        while self.evaluate("document.readyState") != "complete":
            time.sleep(0.01)

    def named(self, name):
        """The parameters of the events of this name since the file was opened."""
        return [event["params"] for event in self.events if event.get("method") == name]

    def evaluate(self, expression):
        """The value of an expression of JavaScript, which the policy of the page does not restrain."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, *, whole=False):
        """What the window shows, or the whole page, as the bytes of a PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def printed(self):
        """The page as the bytes of a PDF."""
        answer = self.call("Page.printToPDF", printBackground=True)
        return base64.b64decode(answer["data"])

    def _read(self):
        while b"\0" not in self._rest:
            received = os.read(self._answers, 1 << 20)
            assert received, "the browser has ended"
            self._rest += received
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)
