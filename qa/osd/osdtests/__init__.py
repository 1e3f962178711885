"""The tests of a real OSD on TableStore, seen from outside: by clients, by the
mon, and by an operator's tools. `qa/osd/osd_test.py` runs them."""
