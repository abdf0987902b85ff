"""The page on the command line shows what happens, and names every command and option."""

from optpess.cli.main import optpess

from cli.transcripts import BLOCK, COMMAND, PAGE, replayed

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_transcripts_are_what_the_commands_print():
    """``python tests/python/cli/transcripts.py`` writes them."""
    assert replayed(TEXT) == TEXT


def test_every_command_has_a_transcript():
    typed = [line for block in BLOCK.findall(TEXT) for line in COMMAND.findall(block)]
    assert {line.split()[1] for line in typed if line.startswith("optpess")} >= set(optpess.commands)


def test_every_option_is_named():
    options = {
        name for each in optpess.commands.values() for option in each.params for name in option.opts
    }
    assert sorted(name for name in options if name.startswith("--") and name not in TEXT) == []
