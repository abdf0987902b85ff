"""Best policies of known models.

``solve`` and ``frontier`` hold the public functions, ``result`` what they return, ``certificate`` what
re-evaluating a policy found. The engines written in Python are in the modules that begin with an
underscore.
"""
