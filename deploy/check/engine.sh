#!/usr/bin/env bash
# engine.sh start DIR: prints the DOCKER_HOST of a running engine, after starting dockerd in DIR if there is none. engine.sh
# stop DIR: stops that dockerd and removes its data. Exit code 3: not possible here; the last line gives the reason.
set -euo pipefail
dir="$2"

start() {
  if docker version --format '{{.Server.Version}}' > /dev/null 2>&1; then
    echo "${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}"
    return
  fi
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] || { echo 'no container engine answers, and only root on Linux can start one'; exit 3; }
  if ! command -v dockerd > /dev/null; then
    command -v apt-get > /dev/null || { echo 'no container engine answers, and there is no apt-get to install one with'; exit 3; }
    install() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends docker.io containerd runc iptables; }
    { install || { apt-get update && install; }; } > "$dir/install.log" 2>&1 || { echo "docker.io could not be installed, see $dir/install.log"; exit 3; }
  fi
  # dockerd is started directly, because there may be no systemd, and with limits no larger than this machine allows.
  local limit
  limit=$(ulimit -Hn)
  [ "$limit" = unlimited ] && limit=1048576
  setsid dockerd --data-root "$dir/data" --exec-root "$dir/exec" -p "$dir/pid" -H "unix://$dir/docker.sock" --default-ulimit "nofile=$limit:$limit" > "$dir/dockerd.log" 2>&1 < /dev/null &
  "$(dirname "$0")/weight.sh" docker
  for _ in $(seq 1 150); do
    if docker -H "unix://$dir/docker.sock" version > /dev/null 2>&1; then
      echo "unix://$dir/docker.sock"
      return
    fi
    kill -0 $! 2> /dev/null || break
    sleep 0.2
  done
  tail -n 3 "$dir/dockerd.log"
  echo 'dockerd does not start here'
  exit 3
}

stop() {
  [ -f "$dir/pid" ] || return 0
  local pid
  pid=$(cat "$dir/pid")
  kill "$pid" 2> /dev/null || true
  for _ in $(seq 1 150); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.2
  done
}

mkdir -p "$dir"
"$1"
