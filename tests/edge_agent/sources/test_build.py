"""Sources are built from settings; their libraries are imported only where they are needed."""

import subprocess
import sys

import pytest

from edge_agent.settings import SourceKind
from edge_agent.sources.build import PROTOCOLS
from tests.system.conftest import clean_environment

_WITHOUT = """
import sys
missing = ["pymodbus", "pymodbus.client", "snap7", "snap7.client", "asyncua", "google.protobuf"]
sys.modules.update(dict.fromkeys(missing))
from edge_agent.__main__ import main
sys.exit(main())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=clean_environment(), check=False
    )


@pytest.mark.parametrize("kind", ["modbus", "s7", "opcua", "sparkplug"])
def test_missing_library_is_a_sentence_that_names_the_extra(kind: str) -> None:
    flags = ["--site", "a", "--machine", "b", "--source-kind", kind]
    done = run("-c", _WITHOUT, "run", *flags)
    assert done.returncode == 2
    assert f"pip install 'alarmcast[{kind}]'" in done.stderr


def test_agent_without_a_protocol_imports_none_of_their_libraries() -> None:
    code = "import sys, edge_agent.agent; print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run("-c", code).stdout.split()}
    assert "paho" in loaded
    assert not loaded & {"asyncua", "pymodbus", "snap7", "psycopg", "google", "asyncio"}


def test_every_protocol_is_a_kind_with_a_table_of_its_name() -> None:
    assert set(PROTOCOLS) | {SourceKind.REPLAY, SourceKind.TAIL, SourceKind.SIMULATED} == set(SourceKind)
