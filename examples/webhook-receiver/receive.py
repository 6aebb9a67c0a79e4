#!/usr/bin/env python3
"""Takes Outpost's signed webhooks and runs a command for each: for a CI that can only be triggered by its own API, or
for none at all. Needs Python alone. TLS ends at a proxy in front of it.

    receive.py SECRET_FILE PORT COMMAND...

COMMAND runs once for each dispatch, with OUTPOST_EVENT (pull_request, push, nightly, experiment), OUTPOST_DISPATCH_ID,
OUTPOST_HEAD_SHA, OUTPOST_PR (empty: none), OUTPOST_CHANGE_URL, and what outpost-report needs: OUTPOST_CALLBACK_URL,
OUTPOST_TOKEN, OUTPOST_RUN_ID. An experiment has OUTPOST_TESTS, too: a file with one `suite/test` in a line, which COMMAND is to
run and no others (docs/runner.md shows how), and OUTPOST_EXPERIMENT_SIDE (head, base). A cancelled change ends what still runs of it, by SIGTERM to its process group.
"""
import hashlib
import hmac
import json
import os
import signal
import subprocess
import sys
import tempfile
import unicodedata
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

BODY_LIMIT = 26 << 20


def environment(event, hook):
    payload, outpost = hook['payload'], hook['outpost']
    pull = payload.get('pull_request')
    return {
        'OUTPOST_EVENT': event,
        'OUTPOST_DISPATCH_ID': outpost['dispatch_id'],
        'OUTPOST_RUN_ID': outpost['dispatch_id'],
        'OUTPOST_HEAD_SHA': pull['head']['sha'] if pull else payload.get('head_sha') or payload['after'],
        'OUTPOST_PR': str(payload['number']) if pull else '',
        'OUTPOST_CHANGE_URL': outpost.get('change_url') or '',
        'OUTPOST_CALLBACK_URL': outpost['callback_url'],
        'OUTPOST_TOKEN': outpost['callback_token'],
    }


def list_of_tests(names):
    """Names of tests come from the code under test. One with a line break or another control character is left out."""
    return [name for name in names if not any(unicodedata.category(c) in ('Cc', 'Zl', 'Zp') for c in name)]


class Receiver(BaseHTTPRequestHandler):
    secret = b''
    program = []
    started = {}  # dispatch_id → its process
    lists = {}  # dispatch_id → its OUTPOST_TESTS
    lock = Lock()

    def do_POST(self):
        size = int(self.headers.get('Content-Length') or 0)
        if not 0 < size <= BODY_LIMIT:
            return self.answer(413)
        body = self.rfile.read(size)
        expected = 'sha256=' + hmac.new(self.secret, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest((self.headers.get('X-Hub-Signature-256') or '').encode(), expected.encode()):
            return self.answer(401)
        try:
            with self.lock:
                code = self.take(self.headers.get('X-Outpost-Event'), json.loads(body))
        except (OSError, ValueError, KeyError) as error:
            print(f'not taken: {error!r}', flush=True)
            return self.answer(503)  # Outpost sends it again
        return self.answer(code)

    def take(self, event, hook):
        if 'payload' not in hook:  # a notice: nothing is to be run
            print(f"{event}: {hook.get('accelerator')} on {hook.get('branch')}, {hook.get('url')}", flush=True)
            return 202
        self.remove_lists()
        dispatch = hook['outpost']['dispatch_id']
        if event == 'cancel':
            process = self.started.get(dispatch)
            if process and process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        elif dispatch not in self.started:  # the same one again: an answer was lost
            variables = {**os.environ, **environment(event, hook)}
            if 'experiment' in hook['outpost']:
                tests = list_of_tests(hook['outpost']['experiment']['tests'])
                if not tests:
                    return 400  # an empty list must not mean all tests
                with tempfile.NamedTemporaryFile('w', encoding='utf-8', newline='\n', delete=False) as file:
                    file.writelines(test + '\n' for test in tests)
                variables['OUTPOST_TESTS'] = self.lists[dispatch] = file.name
                variables['OUTPOST_EXPERIMENT_SIDE'] = hook['outpost']['experiment']['side']
            self.started[dispatch] = subprocess.Popen(self.program, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
        return 202

    def remove_lists(self):
        for dispatch in [one for one in self.lists if self.started[one].poll() is not None]:
            os.unlink(self.lists.pop(dispatch))

    def answer(self, code):
        self.send_response(code)
        self.send_header('Content-Length', '0')
        self.end_headers()


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    with open(sys.argv[1], 'rb') as file:
        Receiver.secret = file.read().rstrip(b'\r\n')
    Receiver.program = sys.argv[3:]
    server = ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Receiver)
    print(f'listening on http://127.0.0.1:{server.server_port}', flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
