"""Learners: the paper's two algorithms (``optpess``) and those they are compared with (``peers``).

``base`` holds what all learners share, ``terms`` what a learner is given and what it guarantees.
"""
