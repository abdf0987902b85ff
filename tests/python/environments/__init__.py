"""Tests of environments: how they are read, imported, made and checked."""
