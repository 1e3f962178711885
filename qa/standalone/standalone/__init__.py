"""Ceph's qa/standalone scripts on OSDs of this store: `scripts` says which, `substitutions` what is
changed in them, `copy` makes what is run, `room` runs one test, `inside` is its first process."""
