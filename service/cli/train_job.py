"""``alarmcast train-job``: the training process; started by the service, not by a user."""

import json
import os
import sys
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

from service.app.configuration import sqlite_url
from service.database.engine import Database
from service.errors import InputRejected, ServiceError, TrainingFailed
from service.settings import Settings
from wire.fast_start import gc_disabled
from wire.identity import MachineId


def train_job() -> None:
    """Warm up, read a job from standard input, train, and write progress to standard output."""
    _lower_priority()
    with gc_disabled():
        from service.learning.training_job import run_training_job, warm_up  # noqa: PLC0415 - loads torch

        warm_up()
    line = sys.stdin.readline()
    if not line:
        return  # the service has stopped, or there was no job
    job = json.loads(line)
    Thread(target=_exit_with_the_service, daemon=True).start()
    try:
        settings = Settings(**job["settings"])
        url = settings.database_url or sqlite_url(settings.data_dir)
        with closing(Database(url, read_only=True)) as database:
            run_training_job(
                settings,
                database,
                machine=MachineId.parse(job["machine"]),
                now=datetime.fromisoformat(job["now"]),
                folder=Path(job["folder"]),
                on_progress=lambda progress: _send(progress.as_json()),
            )
    except (InputRejected, TrainingFailed) as error:
        _send({"failed": str(error)})
    except ServiceError as error:  # of the database, so it may name any machine
        _send({"failed": "The training process could not go on.", "detail": str(error)})
    except OSError as error:  # a full disk above all
        _send({"failed": f"What was learned could not be written: {error.strerror or error}."})
    else:
        _send({"done": True})
        os._exit(0)  # at once: unloading torch takes as long as some of the stages


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _exit_with_the_service() -> None:
    """Exit when the pipe from the service closes, which it does however the service ends."""
    sys.stdin.read()
    os._exit(1)


def _lower_priority() -> None:
    """Take a tenth of a contended core, so that forecasts stay fast while training goes on."""
    os.nice(10)
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
