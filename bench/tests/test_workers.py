"""Client processes that end before they should, against a server that takes everything."""
from __future__ import annotations

import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cephcluster.errors import ClusterError
from storebench.clients.workers import Workers


class Taker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class WorkersEnd(unittest.TestCase):
    def setUp(self) -> None:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.settings = {"kind": "s3", "host": "127.0.0.1", "port": server.server_address[1],
                         "access_key": "a", "secret_key": "b", "bucket": "c", "size": 4096}

    def workers(self) -> Workers:
        return Workers(2, self.settings, lambda: None)

    def kill_one(self, workers: Workers) -> None:
        workers._processes[1].kill()
        workers._processes[1].wait()

    def test_those_who_live_say_what_they_did(self) -> None:
        with self.workers() as workers:
            said = workers.phase("put", 0.2)
        self.assertGreater(min(each["operations"] for each in said), 0)

    def test_one_that_died_before_a_phase_is_an_error(self) -> None:
        with self.assertRaisesRegex(ClusterError, "client process failed"):
            with self.workers() as workers:
                self.kill_one(workers)
                workers.phase("put", 0.2)

    def test_one_that_died_after_the_last_phase_is_an_error(self) -> None:
        with self.assertRaisesRegex(ClusterError, "client process failed"):
            with self.workers() as workers:
                workers.phase("put", 0.2)
                self.kill_one(workers)
