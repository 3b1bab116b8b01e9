"""Tests the unmodified firebase-admin storage against Hearth's files, in emulator mode.

usage: storage_firebase.py HOST:PORT PROJECT
"""

import gzip
import io
import os
import sys
import tempfile

HOST, PROJECT = sys.argv[1:3]
os.environ["STORAGE_EMULATOR_HOST"] = f"http://{HOST}"
os.environ["GOOGLE_CLOUD_PROJECT"] = PROJECT

import firebase_admin
import google.auth.credentials
import requests
from firebase_admin import credentials, storage
from google.api_core import exceptions


class Nobody(credentials.Base):
    def get_credential(self):
        return google.auth.credentials.AnonymousCredentials()


BUCKET = f"{PROJECT}.appspot.com"
firebase_admin.initialize_app(Nobody(), {"projectId": PROJECT, "storageBucket": BUCKET})
bucket = storage.bucket()
done = 0


def step(name, holds=True):
    global done
    assert holds, name
    done += 1


def fails(error, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except error:
        return True
    return False


for leftover in list(bucket.list_blobs(versions=True)):
    leftover.delete()

# Uploads
note = bucket.blob("notes/first.txt")
note.metadata = {"by": "ann"}
note.upload_from_string("hello", content_type="text/plain")
step("upload_from_string", (note.size, note.md5_hash, note.crc32c) == (5, "XUFAKrxLKna5cZ2REBfFkg==", "mnG7TA=="))
with tempfile.NamedTemporaryFile(suffix=".json") as file:
    file.write(b'{"a": 1}')
    file.flush()
    stored = bucket.blob("notes/second.json")
    stored.upload_from_filename(file.name)
step("upload_from_filename", stored.content_type == "application/json" and stored.size == 8)
content = os.urandom(3 << 20)
large = bucket.blob("videos/large.bin", chunk_size=512 << 10)
large.upload_from_file(io.BytesIO(content), size=len(content))
step("chunks", large.size == len(content))
with bucket.blob("videos/written.bin").open("wb", chunk_size=256 << 10) as writer:
    for start in range(0, len(content), 100_000):
        writer.write(content[start:start + 100_000])
step("open for writing", bucket.get_blob("videos/written.bin").crc32c == large.crc32c)
empty = bucket.blob("notes/empty")
empty.upload_from_string(b"")
step("empty file", empty.size == 0 and empty.download_as_bytes() == b"")
step("a wrong checksum is rejected", fails(
    exceptions.BadRequest, bucket.blob("notes/wrong").upload_from_file, io.BytesIO(b"x"), crc32c_checksum_value="AAAAAA=="))
step("a rejected upload stores nothing", not bucket.blob("notes/wrong").exists())

# Downloads
step("download", note.download_as_text() == "hello")
step("large download", large.download_as_bytes() == content)
step("range", note.download_as_bytes(start=1, end=3) == b"ell")
with tempfile.NamedTemporaryFile() as file:
    large.download_to_filename(file.name)
    step("to a file", open(file.name, "rb").read() == content)
with bucket.blob("videos/large.bin").open("rb", chunk_size=300_000) as reader:
    reader.seek(1_000_000)
    step("open for reading", reader.read(10) == content[1_000_000:1_000_010])
zipped = bucket.blob("notes/zipped")
zipped.content_encoding = "gzip"
zipped.upload_from_string(gzip.compress(b"plain " * 1000), content_type="text/plain")
step("decoded by the client", zipped.download_as_bytes() == b"plain " * 1000)
address = f"http://{HOST}/storage/v1/b/{BUCKET}/o/notes%2Fzipped?alt=media"
plain = requests.get(address, headers={"Accept-Encoding": "identity", "Range": "bytes=0-3"}, timeout=20)
step("decoded by the server", plain.content == b"plain " * 1000 and "Content-Encoding" not in plain.headers)

# Metadata
step("get_blob", bucket.get_blob("notes/first.txt").metadata == {"by": "ann"} and bucket.get_blob("none") is None)
note.metadata = {"by": "bob", "n": "1"}
note.cache_control = "public, max-age=60"
note.patch()
fresh = bucket.get_blob("notes/first.txt")
step("patch", fresh.metadata == {"by": "bob", "n": "1"} and fresh.metageneration == 2)
fresh.metadata = {"n": None}
fresh.patch()
step("a key is removed", bucket.get_blob("notes/first.txt").metadata == {"by": "bob"})
note.reload()
step("metageneration precondition", fails(exceptions.PreconditionFailed, note.patch, if_metageneration_match=1))

# Generations
first = note.generation
step("name in use", fails(exceptions.PreconditionFailed, note.upload_from_string, "x", if_generation_match=0))
note.upload_from_string("again", if_generation_match=first)
step("a generation is replaced", note.generation > first and note.download_as_text(if_generation_match=note.generation) == "again")
step("the old generation is deleted", fails(exceptions.NotFound, bucket.blob("notes/first.txt", generation=first).download_as_bytes))
step("not modified", fails(exceptions.NotModified, note.reload, if_generation_not_match=note.generation))

# Lists
step("list", [b.name for b in bucket.list_blobs(prefix="notes/")]
     == ["notes/empty", "notes/first.txt", "notes/second.json", "notes/zipped"])
pages = bucket.list_blobs(delimiter="/")
step("delimiter", [b.name for b in pages] == [] and pages.prefixes == {"notes/", "videos/"})
step("pages", [len(list(page)) for page in bucket.list_blobs(page_size=4).pages] == [4, 2])
step("glob", [b.name for b in bucket.list_blobs(match_glob="**/*.{txt,json}")] == ["notes/first.txt", "notes/second.json"])

# Copies
copy = bucket.copy_blob(note, bucket, "copies/one", if_generation_match=0)
step("copy", copy.download_as_text() == "again" and copy.metadata == {"by": "bob"} and copy.cache_control == note.cache_control)
token, rewritten, total = bucket.blob("copies/two").rewrite(note)
step("rewrite", token is None and rewritten == total == 5)
step("rename", bucket.rename_blob(copy, "copies/three").name == "copies/three" and not copy.exists())
step("move", bucket.move_blob(bucket.blob("copies/three"), "copies/four").download_as_text() == "again")
whole = bucket.blob("copies/whole")
whole.content_type = "text/plain"
whole.compose([note, bucket.blob("copies/four")])
step("compose", whole.download_as_text() == "againagain" and whole.component_count == 2)
step("compose of a missing part", fails(exceptions.NotFound, whole.compose, [bucket.blob("none")]))
note.update_storage_class("NEARLINE")
step("storage class", bucket.get_blob("notes/first.txt").storage_class == "NEARLINE")

# Download tokens, with the Firebase Storage API
shared = bucket.blob("notes/shared.txt")
shared.metadata = {"firebaseStorageDownloadTokens": "a-token"}
shared.upload_from_string("shared", content_type="text/plain")
link = f"http://{HOST}/v0/b/{BUCKET}/o/notes%2Fshared.txt?alt=media"
step("with the download token", requests.get(f"{link}&token=a-token", timeout=20).text == "shared")
step("without the download token", requests.get(link, timeout=20).status_code == 403)
shared.metadata = {"firebaseStorageDownloadTokens": None}
shared.patch()
step("a removed download token", requests.get(f"{link}&token=a-token", timeout=20).status_code == 403)

# Versions
bucket.versioning_enabled = True
bucket.patch()
step("versioning", storage.bucket().get_blob("notes/first.txt") is not None)
kept = bucket.blob("versions/one")
kept.upload_from_string("old")
old = kept.generation
kept.upload_from_string("new")
step("an old version", bucket.blob("versions/one", generation=old).download_as_bytes() == b"old")
kept = bucket.blob("versions/one")
kept.delete()
step("deleted", not kept.exists() and len(list(bucket.list_blobs(prefix="versions/", versions=True))) == 2)
bucket.copy_blob(kept, bucket, "versions/one", source_generation=old)
step("restored", bucket.blob("versions/one").download_as_bytes() == b"old")
bucket.versioning_enabled = False
bucket.patch()

# Batches, and cleaning up
with bucket.client.batch():
    for name in ["copies/two", "copies/four", "copies/whole"]:
        bucket.blob(name).delete()
step("batch", [b.name for b in bucket.list_blobs(prefix="copies/")] == [])
step("delete a missing one", fails(exceptions.NotFound, bucket.blob("none").delete))
bucket.delete_blobs(list(bucket.list_blobs(versions=True)), preserve_generation=True)
step("delete all", list(bucket.list_blobs(versions=True)) == [])

print(f"{done} passed")
