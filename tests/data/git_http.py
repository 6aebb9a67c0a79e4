"""Serves the git repositories below a folder over http on loopback, as git's own http-backend does.

usage: git_http.py FOLDER LOG      prints its port; a line "METHOD PATH" in LOG for each request

/to/HOST:PORT/PATH answers with a redirect to http://HOST:PORT/PATH, /dumb/PATH with the plain file.
"""
import http.server
import os
import subprocess
import sys

folder, log = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        with open(log, "a") as file:
            file.write(f"{self.command} {self.path}{' with a login' if 'Authorization' in self.headers else ''}\n")
        if path.startswith("/to/"):
            self.answer(302, [("Location", "http://" + self.path[len("/to/"):])], b"")
        elif path.startswith("/dumb/"):
            try:
                with open(folder + path[len("/dumb"):], "rb") as file:
                    self.answer(200, [("Content-Type", "text/plain")], file.read())
            except OSError:
                self.answer(404, [], b"")
        else:
            self.run_git(path, query)

    def run_git(self, path, query):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": folder, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "HOME": "/dev/null",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self.answer(status, [h for h in headers if h[0] != "Status"], content)

    def do_CONNECT(self):
        with open(log, "a") as file:
            file.write(f"CONNECT {self.path}\n")
        self.answer(403, [], b"")

    do_POST = do_GET


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
sys.stdout.write(f"{server.server_address[1]}\n")
sys.stdout.flush()
server.serve_forever()
