"""For tests that run what `./run bench` runs."""
from __future__ import annotations

import os
import shutil
import tempfile
import unittest
from pathlib import Path

from storebench.runner import Runner


class WithRunner(unittest.TestCase):
    """`runner` has the directory `folder` for itself."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="benchtest.",
                                           dir=os.environ.get("TABLESTORE_STATE", "/state")))
        cls.runner = Runner(cls.folder, lambda line: None)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.runner.close()
        shutil.rmtree(cls.folder, ignore_errors=True)
