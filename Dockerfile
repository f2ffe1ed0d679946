# Two images from one source: `edge` for the computer beside a machine, `service` for everything else.
#   docker build --target edge --tag alarmcast-edge .
#   docker build --target service --tag alarmcast .
# torch comes in CPU and in accelerator builds; the latter weigh gigabytes that nothing here uses. Where pip's
# own index has no CPU build, name one that has: --build-arg PIP_EXTRA_INDEX_URL=...
# Both run with a read-only root file system: --read-only --tmpfs /tmp

FROM python:3.11-slim-bookworm AS source
WORKDIR /src
# .dockerignore lets nothing through but what the wheel is made of.
COPY . .

FROM source AS edge-wheels
RUN --mount=type=cache,target=/root/.cache/pip \
    pip wheel --wheel-dir /wheels .

# The index is named in this stage only, so that its address stays out of the finished image's history.
FROM source AS service-wheels
ARG PIP_EXTRA_INDEX_URL
RUN --mount=type=cache,target=/root/.cache/pip \
    pip wheel --wheel-dir /wheels ".[service]"

# Both folders belong to the user: an empty volume mounted over one takes its owner over. The number is fixed,
# so that volumes outlive images.
FROM python:3.11-slim-bookworm AS base
RUN groupadd --gid 10001 alarmcast \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/alarmcast --shell /usr/sbin/nologin alarmcast \
    && install --directory --owner alarmcast --group alarmcast /var/lib/alarmcast /etc/alarmcast
ENV PYTHONUNBUFFERED=1
WORKDIR /var/lib/alarmcast
VOLUME /var/lib/alarmcast

FROM base AS service
LABEL org.opencontainers.image.title="Alarmcast" \
      org.opencontainers.image.description="Forecasts the alarms of a fleet of packaging machines" \
      org.opencontainers.image.licenses="Apache-2.0"
# The wheels are the ones just built, and nothing else can be found.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=service-wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels "alarmcast[service]"
# It listens on 127.0.0.1 until ALARMCAST_HOST says otherwise, and beyond only if plain HTTP is allowed.
ENV ALARMCAST_DATA_DIR=/var/lib/alarmcast
USER 10001:10001
EXPOSE 8080
# Over TLS if the API speaks it. Whose certificate it is does not matter here: the answer is our own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, ssl, urllib.request as r; s = 's' * ('ALARMCAST_TLS_CERT' in os.environ); r.urlopen('http' + s + '://127.0.0.1:' + os.environ.get('ALARMCAST_PORT', '8080') + '/livez', timeout=4, context=ssl._create_unverified_context() if s else None)"]
ENTRYPOINT ["alarmcast"]
CMD ["serve"]

# Last, so that a build without --target gives the small one.
FROM base AS edge
LABEL org.opencontainers.image.title="Alarmcast's agent" \
      org.opencontainers.image.description="Hands the alarms of one machine over to Alarmcast" \
      org.opencontainers.image.licenses="Apache-2.0"
# hadolint ignore=DL3013
RUN --mount=type=bind,from=edge-wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels alarmcast
ENV ALARMCAST_EDGE_SPOOL_PATH=/var/lib/alarmcast/spool.sqlite3
USER 10001:10001
# Healthy while it runs and the broker listens to it. Away from the broker it still fills its spool: do not kill it.
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s --retries=3 \
    CMD ["alarmcast-edge", "status"]
ENTRYPOINT ["alarmcast-edge"]
CMD ["run", "--config", "/etc/alarmcast/edge.toml"]
