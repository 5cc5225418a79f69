"""`python ask.py SOCKET KERNEL`: ask the server of judge.py; the exit status is its answer. Imports
next to nothing.
"""

import socket
import sys


def answer(path: str, kernel: str) -> bool:
    """Whether the kernel as it is now gets past all tests."""
    with socket.socket(socket.AF_UNIX) as judge:
        judge.connect(path)
        judge.sendall(kernel.encode())
        return judge.recv(1) == b"0"


if __name__ == "__main__":
    sys.exit(not answer(sys.argv[1], sys.argv[2]))
