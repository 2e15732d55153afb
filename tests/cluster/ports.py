# tests/cluster/ports.py - addresses that a test holds until its nodes listen on them.
import contextlib
import socket


@contextlib.contextmanager
def reserved_address(ports=1):
    """An address whose port no other process gets, nor those after it, as many as asked for. It refuses connections until one of our nodes
    listens on it: a listener with SO_REUSEADDR may, next to a socket that is bound with it and does not listen (socket(7))."""
    with contextlib.ExitStack() as held:
        while True:
            first = held.enter_context(_holder(0)).getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):  # one of them is somebody's: then another first one
                for more in range(1, ports):
                    held.enter_context(_holder(first + more))
                break
        yield f"127.0.0.1:{first}"


def _holder(port):
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind(("127.0.0.1", port))
    except BaseException:
        holder.close()
        raise
    return holder
