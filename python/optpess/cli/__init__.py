"""The command line, which needs the extra ``cli``: reads arguments, calls the package, prints."""
