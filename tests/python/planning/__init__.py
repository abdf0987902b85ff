"""Tests of planning for a known model."""
