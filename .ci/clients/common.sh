# Shared code of the scripts in this folder. Source it in the root of the repository, after `set -euo pipefail`, with
# `hearth` set to the binary. Defines `here`, `work`, `failures`, and the functions below.
# shellcheck shell=bash

here=.ci/clients
work=.build/clients
mkdir -p "$work"
failures=0
server=
export PYTHONDONTWRITEBYTECODE=1

# needs_hearth: exits if the binary does not exist.
needs_hearth() {
  [[ -x $hearth ]] || { echo "$hearth does not exist; build it first: swift build --product hearth" >&2; exit 1; }
}

# environment NAME REQUIREMENT…: creates the virtual environment $work/NAME. If it exists, does nothing and needs no
# network. If it cannot be created, fails, and $work/NAME.log contains the reason.
environment() {
  local name=$1
  shift
  [[ "$(cat "$work/$name.installed" 2>/dev/null)" == "$*" ]] && return
  rm -rf "${work:?}/$name" "$work/$name.installed"
  { python3 -m venv "$work/$name" \
    && timeout 300 "$work/$name/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 20 install "$@"; } \
    >"$work/$name.log" 2>&1 || return 1
  echo "$*" >"$work/$name.installed"
}

# install NAME REQUIREMENT…: like `environment`, and prints the reason for a failure.
install() {
  environment "$@" && return
  echo "Skipped: the tests with $1 were not run: $(tail -n 1 "$work/$1.log")"
  return 1
}

# source_of ENVIRONMENT PACKAGE VERSION FOLDER: unpacks the source of a package, which contains its tests, below
# $work/FOLDER. If it exists, does nothing. If it cannot be downloaded, prints the reason and fails.
source_of() {
  local unpacked=$work/$4/${2//-/_}-$3
  [[ -d $unpacked ]] && return
  rm -rf "${work:?}/$4"
  if ! timeout 180 "$work/$1/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 20 download "$2==$3" \
    --no-binary :all: --no-deps -d "$work/$4" >"$work/$4.log" 2>&1; then
    echo "Skipped: the source of $2 cannot be downloaded: $(tail -n 1 "$work/$4.log")"
    return 1
  fi
  tar -xzf "$work/$4"/*.tar.gz -C "$work/$4"
}

# stop: stops the server that `start` started.
stop() {
  [[ -n $server ]] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap stop EXIT

# start LOG OPTION…: starts a server and sets `url`, and `address` without the scheme.
start() {
  local log=$work/$1
  shift
  stop
  : >"$log"
  "$hearth" serve --port 0 "$@" >"$log" 2>&1 &
  server=$!
  url=
  for _ in $(seq 100); do
    url=$(sed -n 's/^hearth: listening on //p' "$log")
    address=${url#*://}
    [[ -n $url ]] && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  echo "hearth did not start within ten seconds" >&2
  exit 1
}

# passed_of LOG: prints the number of passed tests in a log of pytest.
passed_of() {
  grep -oE '[0-9]+ passed' "$1" | tail -n 1 | grep -oE '[0-9]+' || echo 0
}

# areas_failed NAME: prints the failures of a suite by area, in one line, or nothing if they are unknown.
areas_failed() {
  [[ -s $work/$1.areas ]] || return 0
  echo "; failed: $(sed -E 's/^ *([0-9]+)  (.*[^.])\.?$/\1 (\2)/' "$work/$1.areas" | paste -sd, | sed 's/),/), /g')"
}

# compare NAME COUNT: records the result. Sets `failures` if COUNT is below the number in `passed`, where the name has no
# $prefix.
compare() {
  local kept
  kept=$(sed -n "s/^${1#"${prefix:-}"} //p" "$here/passed")
  # .ci/conformance reads this file. A new result replaces the previous one.
  touch "$work/results"
  sed -i "/^Tests of clients, $1: /d" "$work/results"
  echo "Tests of clients, $1: $2 passed$(areas_failed "$1")." >>"$work/results"
  if (($2 < kept)); then
    echo "$1: only $2 pass, fewer than the $kept in $here/passed"
    failures=1
  elif (($2 > kept)); then
    echo "$1: $2 pass, more than the $kept in $here/passed; raise the number"
  else
    echo "$1: $2 pass, as expected"
  fi
}
