"""The commands, each of which returns a :class:`optpess.cli.output.Result`."""
