"""`python ask.py SOCKET KERNEL`: ask the server of judge.py; the exit status is its answer. Imports next to nothing."""
import socket
import sys

with socket.socket(socket.AF_UNIX) as judge:
    judge.connect(sys.argv[1])
    judge.sendall(sys.argv[2].encode())
    sys.exit(judge.recv(1) != b"0")
