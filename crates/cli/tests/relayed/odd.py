"""A stdio server that is wrong in many ways: what passes must be the same with and without a proxy."""
import hashlib, os, sys

out, inp = sys.stdout.buffer, sys.stdin.buffer
out.write(b'\xef\xbb\xbfnot json\n\xff\xfe\x00\n\r\n{"jsonrpc":"2.0",\n"id":1}\n')
out.flush()
sys.stderr.buffer.write(b"starting \x1b[31m\xff\n")
sys.stderr.flush()
received = hashlib.sha256()
while True:
    piece = os.read(0, 1 << 16)
    if not piece:
        break
    received.update(piece)
for size in (1, 70_000, 3_000_000):
    out.write(b"x" * size + b"\n")
out.write(received.hexdigest().encode() + b"\nno line feed")
out.flush()
sys.stderr.write("ending")
sys.stderr.flush()
os._exit(int(sys.argv[1]))
