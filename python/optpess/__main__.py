"""The command ``optpess``, also as ``python -m optpess``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Runs the command line; returns the exit code."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        print(
            f"optpess: the command line needs {error.name}: pip install 'optpess[cli]'", file=sys.stderr
        )
        return 1
    from optpess.cli.main import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
