#!/bin/sh
# Gives a simulated fleet its past and its keys: three machines enrolled, weeks of history loaded, an edge.toml with
# credentials for each. The service learns them. Run again, after success or after being cut off anywhere, it does
# only what is missing.
set -eu
umask 077

data=${ALARMCAST_DATA_DIR:?is the folder of database and weights}
fleet=${FLEET:-/fleet}
prometheus=${PROMETHEUS:-/prometheus} # there only with monitoring
seed=${FLEET_SEED:-19}
history_days=${HISTORY_DAYS:-60}

# Prometheus looks for its key beside its configuration. Only Prometheus has this folder, and it is another user.
if [ -d "$prometheus" ] && [ ! -f "$prometheus/alarmcast.key" ]; then
  ln -sf /deploy/prometheus.yml /deploy/alerts.yml "$prometheus/"
  alarmcast admin key add prometheus --role viewer >"$prometheus/key.new"
  chmod 644 "$prometheus/key.new"
  mv "$prometheus/key.new" "$prometheus/alarmcast.key"
fi

enrolled=$data/fleet-enrolled
if [ -f "$enrolled" ] && [ -f "$fleet/graz-filler-1.toml" ]; then
  echo "The fleet is prepared already."
  exit 0
fi

# The moment up to which the past is loaded is chosen once. From there on the agents tell it themselves: the
# last days wait at the machines and come over MQTT, as after a cut line.
since_file=$data/fleet-since
if [ ! -f "$since_file" ]; then
  three_days_ago='from datetime import UTC, datetime, timedelta
print((datetime.now(UTC) - timedelta(days=3)).isoformat(timespec="seconds"))'
  since=${FLEET_SINCE:-$(python -c "$three_days_ago")}
  echo "$since" >"$since_file.new"
  mv "$since_file.new" "$since_file"
fi
since=$(cat "$since_file")

# Credentials are issued by the broker, which may still be starting.
broker_answers='import os, socket
at = os.environ["ALARMCAST_BROKER_HOST"], int(os.environ["ALARMCAST_BROKER_PORT"])
socket.create_connection(at, timeout=2).close()'
attempts=0
until python -c "$broker_answers" 2>/dev/null; do
  attempts=$((attempts + 1))
  [ "$attempts" -lt 60 ] || { echo "The broker does not answer." >&2; exit 1; }
  sleep 1
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/history.csv
# The same seed, end and length give the same bytes, and loading the same bytes twice changes nothing.
alarmcast-edge simulate --machines 3 --days "$history_days" --seed "$seed" --end "$since" --out "$log"

catalogue=$(python -c 'from importlib.resources import files
print(files("edge_agent.simulator") / "catalogue.csv")')
alarmcast admin catalogue load "$catalogue"

machine() { # machine INDEX SITE MACHINE ZONE NAME
  config=$fleet/$2-$3.toml
  issued=$folder/$2-$3.toml
  # The simulator writes UTC, wherever the machine stands.
  alarmcast admin enrol "$2/$3" --time-zone "$4" --name "$5" --history "$log" --yes --history-zone UTC --serial "$1" \
    --edge-toml "$issued"
  if [ ! -f "$config" ]; then
    # Enrolled before, and cut off before its credentials were kept: they are shown once, so it gets new ones.
    [ -f "$issued" ] || alarmcast admin machine rotate "$2/$3" --edge-toml "$issued"
    # Its source is simulated, as the container's variables say; only from when on it speaks is known here.
    sed -e "/^since = /d" -e "/^\[source\]\$/a since = \"$since\"" "$issued" >"$config.new"
    mv "$config.new" "$config"
  fi
}
machine 0 padova filler-1 Europe/Rome "Filler 1, Padova"
machine 1 lyon filler-1 Europe/Paris "Filler 1, Lyon"
machine 2 graz filler-1 Europe/Vienna "Filler 1, Graz"

: >"$enrolled"
