"""Learners run against a known model.

``simulate`` runs one learner, ``compare`` several, ``forecast`` predicts a run, ``record`` holds the
results.
"""
