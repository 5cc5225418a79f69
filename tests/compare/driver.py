"""A program with a Spark session: it applies to the session what it is sent, until it is killed.

A process holds one session, classic or of Spark Connect, for as long as it runs. So each driver is
a process of its own, which can also be killed.
"""

import os
import pickle
import sys
import traceback

from compare import spark_session

if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the session or a function prints is no reply
    with spark_session(sys.argv[1]) as spark:
        while True:
            try:
                function, arguments = pickle.load(sys.stdin.buffer)
            except EOFError:
                break
            try:
                reply = True, function(spark, *arguments)
            except Exception:  # the caller is told, whatever it is
                reply = False, traceback.format_exc()
            pickle.dump(reply, replies)
            replies.flush()
