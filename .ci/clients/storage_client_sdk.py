"""Tests the storage of firebase-client-sdk against Hearth's files, with accounts and storage rules.

usage: storage_client_sdk.py HOST:PORT PROJECT
"""

import io
import pathlib
import sys
import tempfile

import requests

HOST, PROJECT = sys.argv[1:3]
requests.delete(f"http://{HOST}/emulator/v1/projects/{PROJECT}/accounts", timeout=20)

from firebase_client import initialize_app
from firebase_client.exceptions import FirebaseException

host, port = HOST.split(":")
config = {"apiKey": "any", "authDomain": f"{PROJECT}.firebaseapp.com", "projectId": PROJECT,
          "databaseURL": f"http://{HOST}", "storageBucket": f"{PROJECT}.appspot.com"}
done = 0


def step(name, holds=True):
    global done
    assert holds, name
    done += 1


def refused(function, *arguments, **named):
    try:
        function(*arguments, **named)
    except FirebaseException as error:
        return error.http_status or str(error)
    return None


def member(name):
    app = initialize_app(config, name=name)
    for service in (app.auth, app.storage):
        service.connect_emulator(host, int(port))
    app.auth.create_user_with_email_and_password(f"{name}@example.com", "secret-1")
    return app, app.auth.current_user.uid


ann, uid = member("ann")
bob, _ = member("bob")
storage = ann.storage
place = f"own/{uid}"

result = storage.upload_bytes(f"{place}/a.txt", b"hello", content_type="text/plain")
step("upload_bytes", result.metadata["size"] == "5" and result.metadata["contentType"] == "text/plain")
step("get_bytes", storage.get_bytes(f"{place}/a.txt") == b"hello")
step("upload_string", storage.upload_string(f"{place}/b.txt", "aGk=", format="base64").metadata["size"] == "2")
named = storage.upload_bytes(f"{place}/c", b"typed", content_type="text/plain", metadata={"customMetadata": {"k": "v"}})
step("a resumable upload without a range", named.metadata["size"] == "5" and named.metadata["contentType"] == "text/plain")
content = bytes(range(256)) * 3000
task = storage.upload_bytes_resumable(f"{place}/chunks.bin", content, chunk_size=256 << 10)
step("a resumable upload in chunks", task.result(timeout=60).metadata["size"] == str(len(content)))
step("content of the resumable upload", storage.get_bytes(f"{place}/chunks.bin") == content)
url = storage.get_download_url(f"{place}/a.txt")
step("get_download_url", requests.get(url, timeout=20).content == b"hello")
changed = storage.update_metadata(f"{place}/a.txt", {"cacheControl": "no-store", "metadata": {"k": "v"}})
step("update_metadata", changed["cacheControl"] == "no-store" and storage.get_metadata(f"{place}/a.txt")["metadata"] == {"k": "v"})
storage.upload_bytes(f"{place}/sub/d", b"d")
names = [item.full_path.removeprefix(f"{place}/") for item in storage.list(place).items]
step("list", names == ["a.txt", "b.txt", "c", "chunks.bin", "sub/d"])
first = storage.list(place, max_results=2)
rest = storage.list(place, page_token=first.next_page_token)
step("pages", [item.name for item in first.items + rest.items] == ["a.txt", "b.txt", "c", "chunks.bin", "d"])
with tempfile.TemporaryDirectory() as folder:
    storage.download_object(f"{place}/a.txt", f"{folder}/a")
    step("download_object", pathlib.Path(f"{folder}/a").read_bytes() == b"hello")
step("another user cannot read", refused(bob.storage.get_bytes, f"{place}/a.txt"))
step("another user cannot list", refused(bob.storage.list, place))
step("another user cannot write", refused(bob.storage.upload_bytes, f"{place}/a.txt", b"x"))
step("another user cannot start a resumable upload", refused(bob.storage.upload_bytes_resumable(f"{place}/x", b"x" * 600_000, chunk_size=256 << 10).result, timeout=60))
step("too large", refused(storage.upload_bytes_resumable(f"{place}/x", b"x" * (2 << 20), chunk_size=512 << 10).result, timeout=60))
step("content type that the rules deny", refused(storage.upload_bytes, f"{place}/x.html", b"x", content_type="text/html"))
step("a rejected upload stores nothing", refused(storage.get_metadata, f"{place}/x"))
storage.delete_object(f"{place}/a.txt")
step("deleted", refused(storage.get_bytes, f"{place}/a.txt"))

print(f"{done} passed")
