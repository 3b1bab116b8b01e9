# The suites of clients that use documents, as functions. Source it after common.sh. Each tests the server at $address, and
# compares the number of passed tests with that of its name in `passed`. The names begin with $prefix in reports.
# shellcheck shell=bash

prefix=

# system_tests: Google's system tests of the library for Python.
system_tests() {
  echo "== ${prefix}google-cloud-firestore: system tests"
  GCLOUD_PROJECT=systests SYSTESTS_LARGE=1 PYTHONPATH=$here timeout 600 "$work/python/bin/python" -m pytest -q -p systests_conftest \
    -p no:cacheprovider -o asyncio_default_fixture_loop_scope=module -o asyncio_default_test_loop_scope=module \
    --timeout=10 --tb=short --junitxml="$work/system-tests.xml" "$work"/sdist/*/tests/system \
    >"$work/system-tests.log" 2>&1 || true
  tail -n 1 "$work/system-tests.log"
  "$work/python/bin/python" "$here/areas.py" "$work/system-tests.xml" | tee "$work/system-tests.areas" || true
  compare "${prefix}system-tests" "$(sed -n 's/^systests: \([0-9]*\) of .*/\1/p' "$work/system-tests.log" | tail -n 1 | grep . || echo 0)"
}

# watch_tests: listeners of that library, whose connections are cut.
watch_tests() {
  echo "== ${prefix}google-cloud-firestore: listeners on connections that break"
  timeout 300 "$work/python/bin/python" -m pytest -q -p no:cacheprovider --timeout=60 --tb=short "$here/test_watch.py" \
    >"$work/watch.log" 2>&1 || true
  tail -n 1 "$work/watch.log"
  compare "${prefix}watch" "$(passed_of "$work/watch.log")"
}

# firedantic_tests: the tests of firedantic.
firedantic_tests() {
  echo "== ${prefix}firedantic: tests"
  GOOGLE_CLOUD_PROJECT=demo timeout 120 "$work/python/bin/python" -m pytest -q --pyargs firedantic.tests \
    -p no:cacheprovider -o asyncio_mode=auto --timeout=20 --tb=short >"$work/firedantic.log" 2>&1 || true
  tail -n 1 "$work/firedantic.log"
  compare "${prefix}firedantic" "$(passed_of "$work/firedantic.log")"
}

# channel_tests: the web SDK's channel, which uses HTTP/1.1 at $channel_address if it is set.
channel_tests() {
  echo "== ${prefix}python-webchannel: the web SDK's channel"
  timeout 180 "$work/python/bin/python" "$here/channel_client.py" "${channel_address:-$address}" >"$work/channel.log" 2>&1 || true
  cat "$work/channel.log"
  compare "${prefix}channel" "$(grep -oE '^[0-9]+ passed' "$work/channel.log" | grep -oE '[0-9]+' || echo 0)"
}
