"""Prints, as Markdown, the results of google-cloud-storage's system tests by area, and the reasons for skipped tests.

usage: storage_areas.py JUNIT_XML VERSION
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# The first pattern that matches a test's name determines its area.
AREAS = [
    ("signed URLs", r"signed"),
    ("preconditions on generations, metagenerations and tags", r"generation|etag|upload_from_file_resumable_with"),
    ("checksums", r"checksum|corrupted"),
    ("copy, move, rewrite, compose", r"copy|move|rewrite|compose|storage_class_(small|large)"),
    ("lists", r"list_blobs|listable|match_glob"),
    ("versions and deletion", r"version|delete_force|delete_blobs"),
    ("transfer manager (many files at once)", r"upload_many|download_many|chunks"),
    ("reading and writing as files", r"blobwriter|blobreader|fileio"),
    ("buckets", r"bucket|rpo|autoclass|soft_delete|lifecycle"),
    ("uploads and downloads", r"upload|download|write|touch|large_file|small_file|gzip"),
    ("metadata and other tests", r""),
]
PREFIX = "not applicable: "


def main(path, version):
    counts = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(list)
    failed = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        area = next(area for area, pattern in AREAS if re.search(pattern, name))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts[area]["failed"] += 1
            failed.append(name)
        elif skipped is None:
            counts[area]["passed"] += 1
        else:
            counts[area]["not applicable"] += 1
            message = skipped.get("message")
            own = "" if message.startswith(PREFIX) else "skipped by the suite itself: "
            reasons[own + message.removeprefix(PREFIX)].append(name)
    columns = ["passed", "failed", "not applicable"]
    print("# google-cloud-storage's system tests\n")
    print(f"Results of version {version} against this server in production mode, with a key of this server.")
    print("`.ci/clients/storage` runs the tests and writes this page to `.build/clients/storage-system-tests.md`. It does")
    print("not run the modules `test_hmac_key_metadata`, `test_kms_integration`, `test_notification` and `test_rapid`,")
    print("which test other services of Google or gRPC, and `test_aco_observability`, which tests the client's traces.\n")
    print("| area | passed | failed | not applicable |\n| --- | --- | --- | --- |")
    for area, _ in AREAS:
        if area in counts:
            print(f"| {area} | " + " | ".join(str(counts[area][column]) for column in columns) + " |")
    print("| **all** | " + " | ".join(str(sum(c[column] for c in counts.values())) for column in columns) + " |")
    if failed:
        print("\nFailed: " + ", ".join(f"`{name}`" for name in sorted(failed)) + ".")
    print("\nTests that are not applicable, by reason:\n")
    for reason in sorted(reasons, key=lambda reason: (-len(reasons[reason]), reason)):
        print(f"- {reason}: " + ", ".join(f"`{name}`" for name in sorted(reasons[reason])))


main(*sys.argv[1:])
