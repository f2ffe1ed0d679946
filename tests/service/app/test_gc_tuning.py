"""Memory of the process: threads share a few heaps."""

import subprocess
import sys

_PROGRAM = """
import ctypes, re, sys, threading
from service.app.gc_tuning import limit_heaps
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


_FRAGMENTED = """
import ctypes, sys
from service.app.gc_tuning import limit_heaps, release_free_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def rss():
    return int(open("/proc/self/statm").read().split()[1]) << 12
pieces = [libc.malloc(60_000) for _ in range(2_000)]
for piece in pieces:
    ctypes.memset(piece, 1, 60_000)
kept = libc.malloc(100_000)  # above them all: the heap cannot shrink from its end
for piece in pieces:
    libc.free(piece)
before = rss()
release_free_memory()
print(before - rss())
"""


def test_freed_memory_below_a_used_piece_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", _FRAGMENTED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100_000_000


_LARGE_ARRAYS = """
import ctypes, sys
from service.app.gc_tuning import limit_heaps
if sys.argv[1] == "limited":
    limit_heaps()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def rss():
    return int(open("/proc/self/statm").read().split()[1]) << 12
libc.free(libc.malloc(30 << 20))  # from now on glibc takes smaller arrays from a heap
before = rss()
array = libc.malloc(20 << 20)
ctypes.memset(array, 1, 20 << 20)
kept = libc.malloc(100_000)  # above it: the heap cannot shrink from its end
libc.free(array)
print(rss() - before)
"""


def test_a_large_array_goes_back_to_the_system_when_it_is_freed() -> None:
    def growth(how: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", _LARGE_ARRAYS, how], capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    assert growth("limited") < 5 << 20 < growth("free")
