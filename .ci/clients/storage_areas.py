"""Prints, as Markdown, which of google-cloud-storage's system tests pass, by area, and why others do not apply.

usage: storage_areas.py JUNIT_XML VERSION
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# The first pattern that a test's name has names its area.
AREAS = [
    ("preconditions on generations, metagenerations and tags", r"generation|etag|upload_from_file_resumable_with"),
    ("checksums", r"checksum|corrupted"),
    ("copy, move, rewrite, compose", r"copy|move|rewrite|compose|storage_class_(small|large)"),
    ("lists", r"list_blobs|listable|match_glob"),
    ("versions and removing", r"version|delete_force|delete_blobs"),
    ("many at once (transfer manager)", r"upload_many|download_many|chunks"),
    ("reading and writing as files", r"blobwriter|blobreader|fileio"),
    ("buckets", r"bucket|rpo|autoclass|soft_delete|lifecycle"),
    ("uploads and downloads", r"upload|download|write|touch|large_file|small_file|gzip"),
    ("metadata and the rest", r""),
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
            own = "" if message.startswith(PREFIX) else "the suite skips it everywhere: "
            reasons[own + message.removeprefix(PREFIX)].append(name)
    columns = ["passed", "failed", "not applicable"]
    print("# google-cloud-storage's system tests\n")
    print(f"Of version {version}, against this server in production mode with a key of its own. `.ci/clients/storage`")
    print("runs them and writes this page to `.build/clients/storage-system-tests.md`. Whole modules that are not run:")
    print("`test_hmac_key_metadata`, `test_kms_integration`, `test_notification`, `test_rapid` (other services of Google's,")
    print("or gRPC), `test_aco_observability` (the client's traces), `test__signing` (see the README).\n")
    print("| area | passed | failed | not applicable |\n| --- | --- | --- | --- |")
    for area, _ in AREAS:
        if area in counts:
            print(f"| {area} | " + " | ".join(str(counts[area][column]) for column in columns) + " |")
    print("| **all** | " + " | ".join(str(sum(c[column] for c in counts.values())) for column in columns) + " |")
    if failed:
        print("\nFailed: " + ", ".join(f"`{name}`" for name in sorted(failed)) + ".")
    print("\nNot applicable, and why:\n")
    for reason in sorted(reasons, key=lambda reason: (-len(reasons[reason]), reason)):
        print(f"- {reason}: " + ", ".join(f"`{name}`" for name in sorted(reasons[reason])))


main(*sys.argv[1:])
