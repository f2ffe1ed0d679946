"""The limit of one forecast over REST: FastAPI returning the same bytes from memory, with nothing around it.

``python -m benchmarks.rest_baseline PORT FILE`` serves the bytes of a file at every machine's forecast.
"""

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Response

from benchmarks.servers import HOST


def main(port: int, body: bytes) -> None:
    """Serve until stopped."""
    app = FastAPI()

    @app.get("/v1/machines/{site}/{machine}/forecast")
    async def forecast(site: str, machine: str) -> Response:  # noqa: ARG001 - they only have to be parsed
        return Response(body, media_type="application/json")

    uvicorn.run(app, host=HOST, port=port, log_config=None, access_log=False)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]).read_bytes())
