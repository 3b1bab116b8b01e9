"""Tests the storage of pyrebase4, or of its fork empyrebase, against Hearth's files, with accounts and storage rules.

Requests to Google's hosts are redirected to this server.

usage: storage_pyrebase4.py HOST:PORT PROJECT [empyrebase]
"""

import io
import json
import os
import re
import sys
import tempfile

HOST, PROJECT = sys.argv[1:3]
IS_EMPYREBASE = sys.argv[3:] == ["empyrebase"]
os.environ["STORAGE_EMULATOR_HOST"] = f"http://{HOST}"

import requests

send = requests.Session.request


def redirected(self, method, url, **named):
    match = re.match(r"https://(www|identitytoolkit|securetoken|firebasestorage)\.googleapis\.com(/.*)", url)
    if match:
        host = "" if match[1] == "firebasestorage" else f"/{match[1]}.googleapis.com"
        url = f"http://{HOST}{host}{match[2]}"
    return send(self, method, url, **named)


requests.Session.request = redirected
requests.delete(f"http://{HOST}/emulator/v1/projects/{PROJECT}/accounts", timeout=20)

if IS_EMPYREBASE:
    import empyrebase as pyrebase
else:
    import pyrebase

BUCKET = f"{PROJECT}.appspot.com"
app = pyrebase.initialize_app({
    "apiKey": "any", "projectId": PROJECT, "authDomain": f"{PROJECT}.firebaseapp.com", "databaseURL": f"http://{HOST}", "storageBucket": BUCKET},
    **({"skip_version_check": True} if IS_EMPYREBASE else {}))
auth, storage = app.auth(), app.storage()
done = 0


def step(name, holds=True):
    global done
    assert holds, name
    done += 1


def refused(function, *arguments):
    try:
        function(*arguments)
    except requests.exceptions.HTTPError as error:
        return json.loads(error.args[1])["error"]["code"]
    return None


def download(path, token=None):
    with tempfile.TemporaryDirectory() as folder:
        storage.child(path).download("", f"{folder}/file", token)
        return open(f"{folder}/file", "rb").read() if os.path.exists(f"{folder}/file") else None


ann = auth.create_user_with_email_and_password("ann@example.com", "secret-1")
bob = auth.create_user_with_email_and_password("bob@example.com", "secret-2")
token, other, place = ann["idToken"], bob["idToken"], f"own/{ann['localId']}"

made = storage.child(f"{place}/note.txt").put(io.BytesIO(b"hello"), token)
step("put", made["name"] == f"{place}/note.txt" and made["size"] == "5" and made["md5Hash"] == "XUFAKrxLKna5cZ2REBfFkg==")
step("download", download(f"{place}/note.txt", token) == b"hello")
step("another user cannot read", download(f"{place}/note.txt", other) is None and download(f"{place}/note.txt") is None)
step("another user cannot write", refused(storage.child(f"{place}/note.txt").put, io.BytesIO(b"x"), other) == 403)
storage.path = None
step("an unauthenticated caller cannot write", refused(storage.child(f"{place}/note.txt").put, io.BytesIO(b"x")) == 403)
storage.path = None
step("too large", refused(storage.child(f"{place}/large").put, io.BytesIO(b"x" * (2 << 20)), token) == 403)
storage.path = None
with tempfile.NamedTemporaryFile() as file:
    file.write(b"from a file" * 10_000)
    file.flush()
    step("put a file", storage.child(f"{place}/file").put(file.name, token)["size"] == "110000")
url = storage.child(f"{place}/note.txt").get_url(token)
step("get_url without a download token gives no access", requests.get(url, timeout=20).status_code == 403)
url = storage.child(f"{place}/note.txt").get_url(made["downloadTokens"])
step("get_url with a download token gives access", requests.get(url, timeout=20).content == b"hello")
step("a name with spaces and special characters", storage.child(f"{place}/ä b+c.txt").put(io.BytesIO(b"1"), token)["name"] == f"{place}/ä b c.txt")
again = storage.child(f"{place}/note.txt").put(io.BytesIO(b"changed"), token)
step("replaced", int(again["generation"]) > int(made["generation"]) and download(f"{place}/note.txt", token) == b"changed")
step("another user cannot delete", refused(storage.delete, f"{place}/note.txt", other) == 403)
storage.delete(f"{place}/note.txt", token)
step("deleted", download(f"{place}/note.txt", token) is None)
step("delete a missing file", refused(storage.delete, f"{place}/note.txt", token) == 404)

# Administrators use Google's client. pyrebase4 creates it from a type of key that no longer exists, so create it here.
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

storage.bucket = Client(project=PROJECT, credentials=AnonymousCredentials()).bucket(BUCKET)
step("list_files", {f"{place}/file", f"{place}/ä b c.txt"} <= {blob.name for blob in storage.list_files()})

print(f"{done} passed")
