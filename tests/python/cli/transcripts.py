"""The transcripts of ``docs/command-line.md``, played again; ``python tests/python/cli/transcripts.py``
writes what the commands print now.
"""

import re
import shlex
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "command-line.md"
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "python"))

from cli.harness import call  # noqa: E402

BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
# A file, which begins with its name in a comment.
FILE = re.compile(r"(?<=^```toml\n)# .*?(?=^```$)", re.DOTALL | re.MULTILINE)
# A command, also over several lines that end with a backslash.
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)


class Terminal:
    """Plays command lines one after the other in the current folder."""

    def __init__(self):
        self.code = 0

    def play(self, typed):
        """What a command line prints."""
        if typed == "echo $?":
            return f"{self.code}\n"
        program, *arguments = shlex.split(typed.replace("\\\n", " "))
        assert program == "optpess", typed
        answer = call(*arguments)
        self.code = answer.code
        return answer.err + answer.out

    def again(self, block):
        """A transcript with what its commands print now."""
        return "".join(f"$ {typed}\n{self.play(typed)}" for typed in COMMAND.findall(block))


def replayed(text):
    """A page with all transcripts played again, in an empty folder."""
    terminal = Terminal()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for content in FILE.findall(text):
            Path(content.split()[1]).write_text(content, encoding="utf-8")
        return BLOCK.sub(lambda block: terminal.again(block.group()), text)


if __name__ == "__main__":
    PAGE.write_text(replayed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
