# What the runs of clients share; sourced at the repository's root, behind `set -euo pipefail`, with `hearth` set to the
# binary. Gives `here`, `work`, `failures`, and the functions below.
# shellcheck shell=bash

here=.ci/clients
work=.build/clients
mkdir -p "$work"
failures=0
server=
export PYTHONDONTWRITEBYTECODE=1

# needs_hearth: ends the run where there is no binary.
needs_hearth() {
  [[ -x $hearth ]] || { echo "There is no $hearth; build it first: swift build --product hearth" >&2; exit 1; }
}

# environment NAME REQUIREMENT…: makes the virtual environment $work/NAME; costs nothing, and needs no network, where it
# is there. Fails where it cannot be made, and leaves why in $work/NAME.log.
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

# install NAME REQUIREMENT…: as `environment`, and says so where it cannot be made.
install() {
  environment "$@" && return
  echo "Skipped: what needs $1 was not run: $(tail -n 1 "$work/$1.log")"
  return 1
}

# source_of ENVIRONMENT PACKAGE VERSION FOLDER: unpacks the source of a package, whose tests no wheel holds, below
# $work/FOLDER; costs nothing where it is there. Says so, and fails, where it cannot be had.
source_of() {
  local unpacked=$work/$4/${2//-/_}-$3
  [[ -d $unpacked ]] && return
  rm -rf "${work:?}/$4"
  if ! timeout 180 "$work/$1/bin/pip" --disable-pip-version-check -q --retries 1 --timeout 20 download "$2==$3" \
    --no-binary :all: --no-deps -d "$work/$4" >"$work/$4.log" 2>&1; then
    echo "Skipped: the source of $2 cannot be had: $(tail -n 1 "$work/$4.log")"
    return 1
  fi
  tar -xzf "$work/$4"/*.tar.gz -C "$work/$4"
}

# stop: ends the server that `start` started.
stop() {
  [[ -n $server ]] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap stop EXIT

# start LOG OPTION…: starts a server, and tells where it listens in `url` and `address` (without the scheme).
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

# passed_of LOG: how many tests pytest says passed.
passed_of() {
  grep -oE '[0-9]+ passed' "$1" | tail -n 1 | grep -oE '[0-9]+' || echo 0
}

# areas_failed NAME: what failed of a suite, in one line; nothing where that is not known.
areas_failed() {
  [[ -s $work/$1.areas ]] || return 0
  echo "; failed: $(sed -E 's/^ *([0-9]+)  (.*[^.])\.?$/\1 (\2)/' "$work/$1.areas" | paste -sd, | sed 's/),/), /g')"
}

# compare NAME COUNT: notes the result, and fails the run where fewer pass than are kept in `passed`.
compare() {
  local kept
  kept=$(sed -n "s/^$1 //p" "$here/passed")
  # Read by .ci/conformance; a run takes the place of the one before. What failed is told by area, where that is known.
  touch "$work/results"
  sed -i "/^Tests of clients, $1: /d" "$work/results"
  echo "Tests of clients, $1: $2 passed$(areas_failed "$1")." >>"$work/results"
  if (($2 < kept)); then
    echo "$1: only $2 pass; $kept did before ($here/passed)"
    failures=1
  elif (($2 > kept)); then
    echo "$1: $2 pass, more than the $kept of $here/passed: raise it"
  else
    echo "$1: $2 pass, as many as are kept"
  fi
}
