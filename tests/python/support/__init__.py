"""What several tests share. Found through `pythonpath` in pyproject.toml."""
