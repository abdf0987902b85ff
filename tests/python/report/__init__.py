"""Tests of reports; `records` makes what they are about."""
