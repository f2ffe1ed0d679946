"""``alarmcast train-job``: the process that trains; started by the service, not by people."""

import json
import os
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

from service.app.training_job import run_training_job, warm_up
from service.errors import InputRejected, ServiceError, TrainingFailed
from service.settings import Settings
from wire.identity import MachineId


def train_job() -> None:
    """Get ready, read orders from standard input, learn one machine, tell progress on standard output."""
    _lower_priority()
    warm_up()
    line = sys.stdin.readline()
    if not line:
        return  # the service has ended, or nobody came
    orders = json.loads(line)
    Thread(target=_end_with_the_service, daemon=True).start()
    try:
        run_training_job(
            Settings(**orders["settings"]),
            machine=MachineId.parse(orders["machine"]),
            now=datetime.fromisoformat(orders["now"]),
            folder=Path(orders["folder"]),
            told=lambda progress: _say(progress.as_json()),
        )
    except (InputRejected, TrainingFailed) as error:
        _say({"failed": str(error)})
    except ServiceError as error:  # of the store, and so it may name any machine
        _say({"failed": "The training process could not go on.", "detail": str(error)})
    except OSError as error:  # a full disk above all
        _say({"failed": f"What was learned could not be written: {error.strerror or error}."})
    else:
        _say({"done": True})
        os._exit(0)  # at once: what was loaded takes as long to take down as some of the stages


def _say(words: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def _end_with_the_service() -> None:
    """End when the pipe from the service closes, which it does however that ends: nobody wants the result."""
    sys.stdin.read()
    os._exit(1)


def _lower_priority() -> None:
    """Take a tenth of a core that somebody else wants too, so that forecasts stay fast and learning goes on."""
    os.nice(10)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
