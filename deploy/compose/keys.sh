#!/bin/sh
# Makes every key and password that the containers need, each in a volume that only its holder has: a private
# authority, the broker's certificate and first memory, the service's password there, and the database's.
# Run again, after success or after being cut off anywhere, it makes only what is missing.
# Before the broker's certificate ends: sign a new one, hand it to the broker, let the broker read it.
#   docker compose run --rm --entrypoint alarmcast keys admin tls-init /authority --renew
#   docker compose run --rm keys
#   docker compose restart mosquitto
set -eu
umask 077

authority=${AUTHORITY:-/authority} # stays here
broker=${BROKER:-/broker}
service=${SERVICE:-/service}
fleet=${FLEET:-/fleet}
database=${DATABASE:-/database}       # there only with PostgreSQL
prometheus=${PROMETHEUS:-/prometheus} # there only with monitoring
grafana=${GRAFANA:-/grafana}
broker_sees=${BROKER_SEES:-/mosquitto/guarded}
plugin=${BROKER_PLUGIN:-/usr/lib/mosquitto_dynamic_security.so}

give() { # give USER FILE...: only its holder reads it
  user=$1
  shift
  if [ "$(id -u)" = 0 ]; then chown "$user:$user" "$@"; fi
}

if [ ! -f "$service/broker-password" ]; then
  rm -rf "${authority:?}"/* "${broker:?}"/*
  alarmcast admin tls-init "$authority" --host mosquitto --host service
  mkdir "$broker/tls"
  cp "$authority/ca.pem" "$authority/broker.pem" "$authority/broker.key" "$broker/tls/"
  alarmcast admin broker-init "$broker" --tls "$broker_sees/tls" --seen-as "$broker_sees" --plugin "$plugin"
  mv "$broker/admin-password" "$authority/"
  give "${BROKER_USER:-1883}" "$broker" "$broker/mosquitto.conf" "$broker/data" "$broker/data/"* \
    "$broker/tls" "$broker/tls/"*
  cp "$authority/ca.pem" "$service/"
  mv "$broker/service-password" "$service/broker-password.new"
  give "${SERVICE_USER:-10001}" "$service" "$service/ca.pem" "$service/broker-password.new"
  mv "$service/broker-password.new" "$service/broker-password"
fi

if ! cmp -s "$authority/broker.pem" "$broker/tls/broker.pem"; then # it was renewed; its key goes first
  cp "$authority/broker.pem" "$broker/tls/broker.pem.new"
  cp "$authority/broker.key" "$broker/tls/broker.key.new"
  give "${BROKER_USER:-1883}" "$broker/tls/broker.pem.new" "$broker/tls/broker.key.new"
  mv "$broker/tls/broker.key.new" "$broker/tls/broker.key"
  mv "$broker/tls/broker.pem.new" "$broker/tls/broker.pem"
fi

give "${SERVICE_USER:-10001}" "$fleet" # for prepare.sh to fill

new_password() { python -c 'import secrets; print(secrets.token_urlsafe(32))'; }

if [ -d "$database" ] && [ ! -f "$service/database-url" ]; then
  password=$(new_password)
  echo "$password" >"$database/password"
  echo "postgresql+psycopg://alarmcast:$password@database/alarmcast" >"$service/database-url.new"
  give "${DATABASE_USER:-999}" "$database" "$database/password"
  give "${SERVICE_USER:-10001}" "$service/database-url.new"
  mv "$service/database-url.new" "$service/database-url"
fi

if [ -d "$prometheus" ]; then give "${SERVICE_USER:-10001}" "$prometheus"; fi # for prepare.sh to fill
if [ -d "$grafana" ] && [ ! -f "$grafana/password" ]; then
  new_password >"$grafana/password.new"
  give "${GRAFANA_USER:-472}" "$grafana" "$grafana/password.new"
  mv "$grafana/password.new" "$grafana/password"
fi
