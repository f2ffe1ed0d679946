"""Model weights as safetensors files named by their sha256, written atomically and verified on load."""

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from forecasting import encoding, history
from forecasting.calibration import Calibration
from forecasting.encoding import Encoding
from forecasting.forecaster import Forecaster
from forecasting.history import HistorySpec
from forecasting.network import Network
from forecasting.vocabulary import Vocabulary
from forecasting.window import WindowSpec
from service.database.files import create_private, make_private_folder, stale_files, sync
from service.errors import Unavailable

_FORMAT = "alarmcast-3"


@dataclass(frozen=True)
class WeightsFolder:
    """Folder of the weights of all versions."""

    path: Path

    def save(self, forecaster: Forecaster) -> str:
        """Write a forecaster and return its sha256."""
        body = save(_tensors(forecaster), metadata={"alarmcast": json.dumps(_about(forecaster))})
        name = sha256(body).hexdigest()
        self.write(name, body)
        return name

    def write(self, name: str, body: bytes) -> None:
        """Write or replace a file atomically and durably."""
        make_private_folder(self.path)
        final, temporary = self._file(name), self.path / f".{name}.{os.getpid()}.{get_ident()}"
        try:
            create_private(temporary)
            with temporary.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(final)
        finally:
            temporary.unlink(missing_ok=True)
        sync(self.path)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file, or raise :class:`Unavailable` if it is missing or changed."""
        file = self._file(name)
        try:
            body = file.read_bytes()
        except OSError as error:
            raise Unavailable(f"The weights {file} cannot be read: {error.strerror}. Restore them.") from None
        if sha256(body).hexdigest() != name:
            raise Unavailable(f"The weights {file} are damaged: they no longer match their name. Restore them.")
        return body

    def load(self, name: str) -> Forecaster:
        """Return a forecaster, or raise :class:`Unavailable`."""
        body, file = self.read(name), self._file(name)
        try:
            with safe_open(file, framework="np") as opened:
                about = json.loads(opened.metadata()["alarmcast"])
            return _forecaster(load(body), about)
        except (SafetensorError, KeyError, ValueError) as error:
            raise Unavailable(f"The weights {file} were written by another version: {error}.") from None

    def delete(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def names(self, *, older_than: float) -> set[str]:
        """Return the names of files last written before a Unix time."""
        return {file.stem for file in stale_files(self.path, "*.safetensors", older_than=older_than)}

    def sweep(self, used: Collection[str], *, older_than: float) -> int:
        """Delete unused files last written before a Unix time, left by killed processes; return their number."""
        needed = {self._file(name).name for name in used}
        stray = [file for file in stale_files(self.path, "*", older_than=older_than) if file.name not in needed]
        for file in stray:
            file.unlink(missing_ok=True)
        return len(stray)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.safetensors"


def _tensors(forecaster: Forecaster) -> dict[str, np.ndarray[Any, Any]]:
    tensors = {"thresholds": forecaster.thresholds}
    main = forecaster.calibration
    for name, curves in (("calibration", main), ("near", main.near), ("far", main.far)):
        if curves is not None:
            tensors |= {f"{name}.scale": curves.scale, f"{name}.shift": curves.shift}
    tensors |= {f"network.{name}": array for name, array in forecaster.network.arrays().items()}
    return {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in tensors.items()}


def _about(forecaster: Forecaster) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "inputs": forecaster.vocabulary.inputs,
        "targets": forecaster.vocabulary.targets,
        "lookback_minutes": forecaster.spec.lookback / timedelta(minutes=1),
        "horizon_minutes": forecaster.spec.horizon / timedelta(minutes=1),
        "history": None if forecaster.history is None else _history(forecaster.history),
        "encoding": None if forecaster.network.encoding is None else encoding.VERSION,
    }


def _forecaster(tensors: dict[str, np.ndarray[Any, Any]], about: dict[str, Any]) -> Forecaster:
    if about["format"] != _FORMAT:
        raise ValueError(f"format {about['format']!r}")
    arrays = {name: tensor for full, tensor in tensors.items() if (name := full.removeprefix("network.")) != full}
    past = None if about["history"] is None else _history_spec(about["history"])
    return Forecaster(
        spec=WindowSpec(timedelta(minutes=about["lookback_minutes"]), timedelta(minutes=about["horizon_minutes"])),
        vocabulary=Vocabulary(tuple(about["inputs"]), tuple(about["targets"])),
        network=Network.from_arrays(arrays, _encoding(about["encoding"], past)),
        calibration=_calibration(tensors),
        thresholds=tensors["thresholds"],
        history=past,
    )


def _calibration(tensors: dict[str, np.ndarray[Any, Any]]) -> Calibration:
    others = {
        name: Calibration(tensors[f"{name}.scale"], tensors[f"{name}.shift"])
        for name in ("near", "far")
        if f"{name}.scale" in tensors
    }
    return Calibration(tensors["calibration.scale"], tensors["calibration.shift"], **others)


def _history(spec: HistorySpec) -> dict[str, Any]:
    seconds: dict[str, Any] = to_jsonable_python(spec, timedelta_mode="float")
    return {"features": history.VERSION, **seconds}


def _history_spec(about: dict[str, Any]) -> HistorySpec:
    if about.pop("features") != history.VERSION:
        raise ValueError("its history features have another version")
    return TypeAdapter(HistorySpec).validate_python(about)


def _encoding(version: int | None, spec: HistorySpec | None) -> Encoding | None:
    if version is None or spec is None:
        return None
    if version != encoding.VERSION:
        raise ValueError("its encoding of the history has another version")
    return Encoding.build(spec)
