"""The HTTP interface of ClickHouse, as far as the client uses it, in front of the engine in this process (chdb).

Usage: clickhouse-front.py <directory> <port>
"""
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

engine = session.Session(sys.argv[1])
lock = threading.Lock()
# Not settings of a query.
OTHER = {"query", "query_id", "session_id", "default_format", "database", "role", "wait_end_of_query"}


def literal(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        url = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.read_body().decode()
        query, data = (url["query"], body) if "query" in url else (body, "")
        settings = {name: value for name, value in url.items() if name not in OTHER and not name.startswith("param_")}
        for name, value in url.items():
            if name.startswith("param_"):
                query = re.sub(
                    r"\{%s: ?(\w+)\}" % re.escape(name[6:]),
                    lambda found: value if found[1] in ("Int32", "Int64", "Float64") else literal(value),
                    query,
                )
        if query.startswith("SELECT") and settings:
            head, _, form = query.rpartition("FORMAT ")
            query = f"{head} SETTINGS {', '.join(f'{name} = {value if value.isdigit() else literal(value)}' for name, value in settings.items())} FORMAT {form}"
        if query.startswith("INSERT"):
            named = ", ".join(f"{name} = {value if value.isdigit() else literal(value)}" for name, value in settings.items())
            head, _, form = query.partition(" FORMAT ")
            query = f"{head} SETTINGS {named} FORMAT {form}\n{data}"
        status, text = 200, b""
        try:
            with lock:
                text = bytes(engine.query(query, "TabSeparated").bytes() or b"")
        except Exception as error:  # what the engine says of the query
            status, text = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-ClickHouse-Summary", json.dumps({"written_rows": "0"}))
        if status != 200:
            self.send_header("X-ClickHouse-Exception-Code", "1")
        self.end_headers()
        self.wfile.write(text)

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Front)
print("listening", flush=True)
server.serve_forever()
