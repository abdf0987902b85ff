"""Tests of the learners, live and simulated."""
