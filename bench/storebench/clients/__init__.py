"""Clusters of one to three OSDs under the clients that people use: see run.py."""
