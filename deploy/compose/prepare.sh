#!/bin/sh
# Gives a simulated fleet its past: three machines enrolled, weeks of history loaded. The service learns them.
# Run again, after success or after being cut off anywhere, it does only what is missing.
set -eu

data=${ALARMCAST_DATA_DIR:?is the folder of database and weights}
config=${EDGE_CONFIG:-/etc/alarmcast/edge.toml}
seed=${FLEET_SEED:-19}
history_days=${HISTORY_DAYS:-60}

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
printf '[source]\nsince = "%s"\n' "$since" >"$config.new"
mv "$config.new" "$config"

enrolled=$data/fleet-enrolled
if [ -f "$enrolled" ]; then
  echo "The fleet is prepared already."
  exit 0
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/history.csv
# The same seed, end and length give the same bytes, and loading the same bytes twice changes nothing.
alarmcast-edge simulate --machines 3 --days "$history_days" --seed "$seed" --end "$since" --out "$log"

catalogue=$(python -c 'from importlib.resources import files
print(files("edge_agent.simulator") / "catalogue.csv")')
alarmcast admin catalogue load "$catalogue"

machine() { # machine INDEX SITE/MACHINE ZONE NAME
  alarmcast admin enrol "$2" --time-zone "$3" --name "$4" --history "$log" --serial "$1"
}
machine 0 padova/filler-1 Europe/Rome "Filler 1, Padova"
machine 1 lyon/filler-1 Europe/Paris "Filler 1, Lyon"
machine 2 graz/filler-1 Europe/Vienna "Filler 1, Graz"

: >"$enrolled"
