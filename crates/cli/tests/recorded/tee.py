"""Stands in a connection, passes all bytes on, and writes hashes of both directions to a file.

tee.py FILE COMMAND…    over the pipes of a command
tee.py FILE URL         over HTTP, before this server; the address is on stderr
"""
import asyncio, hashlib, json, os, signal, subprocess, sys, threading, urllib.parse

# They belong to each connection, or name the other side.
OF_THE_CONNECTION = {b"host", b"connection", b"keep-alive", b"transfer-encoding", b"content-length"}


class Digest:
    def __init__(self):
        self.hash, self.bytes = hashlib.sha256(), 0

    def feed(self, piece):
        self.hash.update(piece)
        self.bytes += len(piece)


def over_pipes(file, command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, back = Digest(), Digest()

    def copy(source, target, digest):
        while piece := os.read(source, 1 << 16):
            digest.feed(piece)
            while piece:
                piece = piece[os.write(target, piece) :]

    def to_server():
        try:
            copy(0, server.stdin.fileno(), out)
        except OSError:
            pass
        server.stdin.close()

    threading.Thread(target=to_server, daemon=True).start()
    # Whoever is patient for too short a time gets the same end.
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    copy(server.stdout.fileno(), 1, back)
    code = server.wait()
    keep(file, [[out.hash.hexdigest(), back.hash.hexdigest()]], out.bytes, back.bytes)
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)


def keep(file, exchanges, to_server, from_server):
    with open(file + ".new", "w") as kept:
        json.dump({"exchanges": sorted(exchanges), "to_server": to_server, "from_server": from_server}, kept)
    os.rename(file + ".new", file)


class Messages:
    """Reads along on one direction of a connection: a head, a body of known or of unknown length, and so on."""

    def __init__(self, is_response, answers):
        self.is_response, self.answers = is_response, answers
        self.buffer, self.digest, self.left, self.done = b"", None, 0, []
        self.body_bytes = 0

    def feed(self, piece):
        self.buffer += piece
        while self.step():
            pass

    def step(self):
        if self.digest is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.head(self.buffer[:end].split(b"\r\n"))
            self.buffer = self.buffer[end + 4 :]
            return True
        if self.left == "chunk":
            size, end, rest = self.buffer.partition(b"\r\n")
            if not end:
                return False
            size = int(size.split(b";")[0], 16)
            if size == 0:
                # No trailers are sent here.
                if not rest.startswith(b"\r\n"):
                    return False
                self.buffer = rest[2:]
                return self.finish()
            self.buffer, self.left = rest, ("in a chunk", size)
            return True
        if isinstance(self.left, tuple):
            size = self.left[1]
            taken = self.buffer[:size]
            self.body(taken)
            self.buffer = self.buffer[len(taken) :]
            if size > len(taken):
                self.left = ("in a chunk", size - len(taken))
                return False
            if len(self.buffer) < 2:
                self.left = ("in a chunk", 0)
                return False
            self.buffer, self.left = self.buffer[2:], "chunk"
            return True
        if self.left == "until the end":
            self.body(self.buffer)
            self.buffer = b""
            return False
        taken = self.buffer[: self.left]
        self.body(taken)
        self.buffer, self.left = self.buffer[len(taken) :], self.left - len(taken)
        return self.finish() if self.left == 0 else False

    def head(self, lines):
        first, headers = lines[0], [line.partition(b":") for line in lines[1:]]
        headers = sorted((name.lower(), value.strip()) for name, _, value in headers)
        known = dict(headers)
        self.digest = hashlib.sha256()
        status = first.split(b" ", 1)[1] if self.is_response else first
        told = [status] + [name + b": " + value for name, value in headers if name not in OF_THE_CONNECTION]
        self.digest.update(b"\n".join(told) + b"\n\n")
        method = self.answers.pop(0) if self.is_response and self.answers else None
        if not self.is_response:
            self.answers.append(first.split(b" ")[0])
        is_bodiless = self.is_response and (status[:3] in (b"204", b"304") or status[:1] == b"1" or method == b"HEAD")
        if known.get(b"transfer-encoding", b"").lower() == b"chunked":
            self.left = "chunk"
        elif b"content-length" in known:
            self.left = int(known[b"content-length"])
        else:
            self.left = "until the end" if self.is_response and not is_bodiless else 0
        if is_bodiless or self.left == 0:
            self.finish()

    def body(self, piece):
        self.digest.update(piece)
        self.body_bytes += len(piece)

    def finish(self):
        self.done.append(self.digest.hexdigest())
        self.digest = None
        return True

    def end(self):
        if self.digest is not None:
            self.finish()


async def over_http(file, url):
    parts = urllib.parse.urlsplit(url)
    exchanges, totals = [], [0, 0]

    async def connection(reader, writer):
        server_reader, server_writer = await asyncio.open_connection(parts.hostname, parts.port)
        answers = []
        requests, responses = Messages(False, answers), Messages(True, answers)

        async def to_server():
            try:
                while piece := await reader.read(1 << 16):
                    requests.feed(piece)
                    # The head of each request comes in one piece from these clients.
                    own = writer.get_extra_info("sockname")[1]
                    server_writer.write(piece.replace(b"127.0.0.1:%d" % own, parts.netloc.encode()))
                    await server_writer.drain()
            finally:
                server_writer.close()

        async def to_client():
            try:
                while piece := await server_reader.read(1 << 16):
                    responses.feed(piece)
                    writer.write(piece)
                    await writer.drain()
            finally:
                writer.close()

        try:
            await asyncio.gather(to_server(), to_client(), return_exceptions=True)
        except asyncio.CancelledError:
            # The end of the recording, which has what came so far.
            pass
        requests.end()
        responses.end()
        pairs = zip(requests.done, responses.done + [None] * len(requests.done))
        exchanges.extend([request, response or ""] for request, response in pairs)
        totals[0] += requests.body_bytes
        totals[1] += responses.body_bytes

    listener = await asyncio.start_server(connection, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}{parts.path}", file=sys.stderr, flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    listener.close()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0.2)
    keep(file, exchanges, *totals)


file, *server = sys.argv[1:]
if server[0].startswith("http://"):
    asyncio.run(over_http(file, server[0]))
else:
    over_pipes(file, server)
