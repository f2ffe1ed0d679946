"""Memory of the process: threads share a few heaps."""

import subprocess
import sys

_PROGRAM = """
import ctypes, re, sys, threading
from service.bootstrap.collector import limit_heaps
if sys.argv[1] == "limited":
    limit_heaps()
ready, end = threading.Barrier(9), threading.Event()
malloc = ctypes.CDLL(None).malloc
def work():
    malloc(1000)
    ready.wait()
    end.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
for thread in threads:
    thread.start()
ready.wait()
heap = 64 << 20  # glibc reserves so much for each heap of a thread
maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) (rw-p|---p) 0+ 00:00 0 *$", open("/proc/self/maps").read(), re.M)
starts = {int(start, 16) // heap for start, _, _ in maps if int(start, 16) % heap == 0}
print(len(starts))
end.set()
"""


def heaps(how: str) -> int:
    """Return how many heaps nine threads have in a process of their own."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_threads_share_a_few_heaps() -> None:
    assert heaps("limited") <= 2 < heaps("free")
