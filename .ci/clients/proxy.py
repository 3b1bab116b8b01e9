"""Tests a server in production mode through a proxy that terminates TLS: each kind of request of docs/proxies.md.

Prints one line for each check, and exits with 1 if one fails.

usage: proxy.py URL CERTIFICATES KEY_FILE
"""
import hashlib
import json
import os
import queue
import sys
import threading
import time
import urllib.parse
import uuid

url, certificates, key_file = sys.argv[1:4]
# The libraries read these when they are imported.
os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = os.environ["REQUESTS_CA_BUNDLE"] = certificates
os.environ.pop("FIRESTORE_EMULATOR_HOST", None)

import requests
from google.auth.transport.requests import Request
from google.cloud import firestore
from google.oauth2 import service_account

# A change must arrive within this time. A proxy that buffers holds it back for as long as the response lasts.
SECONDS = 10
UPLOAD_BYTES = 50 << 20
host = url.partition("://")[2]
credentials = service_account.Credentials.from_service_account_file(
    key_file, scopes=["https://www.googleapis.com/auth/cloud-platform"])
# The key's `token_uri` is the address of the proxy.
credentials.refresh(Request())
admin = {"Authorization": f"Bearer {credentials.token}"}
project = credentials.project_id
bucket = f"{project}.appspot.com"
root = f"projects/{project}/databases/(default)"
documents = f"{url}/v1/{root}/documents"
db = firestore.Client(project=project, client_options={"api_endpoint": host}, credentials=credentials)
# A name of its own for each run, because a write without a change is not an event.
run = uuid.uuid4().hex
failed = 0


def check(name, body):
    """Runs one check. Any exception is a failure."""
    global failed
    try:
        body()
    except Exception as error:  # pylint: disable=broad-except
        failed += 1
        print(f"FAILED {name}: {type(error).__name__}: {str(error)[:400]}", flush=True)
    else:
        print(f"ok {name}", flush=True)


def reads_over_rest():
    db.document("notes/rest").set({"n": 1})
    reply = requests.get(f"{documents}/notes/rest", headers=admin, timeout=SECONDS)
    assert reply.status_code == 200 and reply.json()["fields"]["n"] == {"integerValue": "1"}, reply.text
    slash = requests.get(f"{documents}/notes/a%2Fb", headers=admin, timeout=SECONDS)
    assert slash.status_code != 200, "the proxy must not decode %2F"


def listens_over_grpc():
    seen = queue.Queue()
    watch = db.collection(f"grpc-{run}").on_snapshot(lambda notes, changes, time: seen.put([note.id for note in notes]))
    try:
        assert seen.get(timeout=SECONDS) == []
        db.document(f"grpc-{run}/first").set({"n": 1})
        assert seen.get(timeout=SECONDS) == ["first"]
    finally:
        watch.unsubscribe()


def pieces(reply):
    """Returns a queue with the pieces of a response as they arrive."""
    arrived = queue.Queue()

    def read():
        try:
            for piece in reply.iter_content(None):
                arrived.put(piece.decode())
        except Exception:  # pylint: disable=broad-except
            pass
        arrived.put(None)

    threading.Thread(target=read, daemon=True).start()
    return arrived


def wait_for(arrived, text):
    """Waits until the pieces contain a text."""
    collected = ""
    deadline = time.monotonic() + SECONDS
    while text not in collected:
        piece = arrived.get(timeout=max(0.01, deadline - time.monotonic()))
        assert piece is not None, f"the response ended after {collected[-200:]}"
        collected += piece


def streams_events():
    with requests.get(f"{documents}/notes:listen", stream=True, timeout=SECONDS,
                      headers={**admin, "Accept": "text/event-stream"}) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream"), reply.headers
        arrived = pieces(reply)
        wait_for(arrived, "readTime")
        db.document(f"notes/{run}").set({"n": 2})
        wait_for(arrived, f"notes/{run}")


def listens_over_a_channel():
    session = requests.Session()
    channel = f"{url}/google.firestore.v1.Firestore/Listen/channel?VER=8&database={urllib.parse.quote(root)}"
    target = {"database": root, "addTarget": {"targetId": 2, "query": {
        "parent": f"{root}/documents", "structuredQuery": {"from": [{"collectionId": f"channel-{run}"}]}}}}
    form = {"headers": "X-Goog-Api-Client:test\r\nContent-Type:text/plain\r\n", "count": "1", "ofs": "0",
            "req0___data__": json.dumps(target)}
    opened = session.post(f"{channel}&RID=1&CVER=22&X-HTTP-Session-Id=gsessionid", data=form, timeout=SECONDS)
    assert opened.status_code == 200, opened.text
    sid = json.loads(opened.text.split("\n", 1)[1])[0][1][1]
    with session.get(f"{channel}&RID=rpc&SID={sid}&AID=0&CI=0&TYPE=xmlhttp", stream=True, timeout=SECONDS) as reply:
        assert reply.status_code == 200, reply.text
        arrived = pieces(reply)
        wait_for(arrived, "CURRENT")
        db.document(f"channel-{run}/first").set({"n": 3})
        wait_for(arrived, f"channel-{run}/first")


def content():
    return os.urandom(1 << 20) * (UPLOAD_BYTES >> 20)


def digest(name):
    """Returns the SHA-256 of a stored file."""
    found = hashlib.sha256()
    place = f"{url}/storage/v1/b/{bucket}/o/{name}?alt=media"
    with requests.get(place, headers=admin, stream=True, timeout=60) as reply:
        reply.raise_for_status()
        for piece in reply.iter_content(1 << 20):
            found.update(piece)
    return found.hexdigest()


def uploads_at_once():
    data = content()
    reply = requests.post(f"{url}/upload/storage/v1/b/{bucket}/o?uploadType=media&name=plain", headers=admin,
                          data=data, timeout=120)
    assert reply.status_code == 200, reply.text
    assert digest("plain") == hashlib.sha256(data).hexdigest()


def uploads_in_parts():
    data = content()
    started = requests.post(f"{url}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name=parts", headers=admin,
                            json={}, timeout=SECONDS)
    place = started.headers["Location"]
    assert place.startswith(f"{url}/"), f"{place} is not below {url}"
    half = len(data) // 2
    first = requests.put(place, headers={**admin, "Content-Range": f"bytes 0-{half - 1}/{len(data)}"},
                         data=data[:half], timeout=120)
    assert first.status_code == 308, first.text
    last = requests.put(place, headers={**admin, "Content-Range": f"bytes {half}-{len(data) - 1}/{len(data)}"},
                        data=data[half:], timeout=120)
    assert last.status_code == 200, last.text
    assert digest("parts") == hashlib.sha256(data).hexdigest()


for name, body in list(globals().items()):
    if callable(body) and name.split("_")[0] in ("reads", "listens", "streams", "uploads"):
        check(name.replace("_", " "), body)
sys.exit(1 if failed else 0)
