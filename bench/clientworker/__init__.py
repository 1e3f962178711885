"""One client process of a cluster that is measured: see __main__.py."""
