"""The program that runs on the host for the length of a session, sent to it in that session.

Standard library only, Python 3.7 and later, Linux. Only framing.py also runs on this side.
"""
