"""Prints the failed tests of a pytest run, grouped by area.

usage: areas.py JUNIT_XML
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# The first pattern that matches a test's name determines its area. Requests that the server does not implement are
# grouped by their error message.
AREAS = [
    ("pipelines", r"pipeline"),
    ("watch", r"watch"),
    ("explain", r"explain"),
    ("vectors", r"vector"),
    ("partition queries", r"partition"),
    ("BSON values", r"bson"),
    ("aggregations", r"count|sum|avg|aggregation"),
    ("transactions", r"transaction"),
    ("read time", r"read_time"),
    ("bulk writer", r"bulk|recursive"),
    ("collection groups", r"collection_group|chunk"),
    ("large documents", r"large"),
    ("queries", r"query|order_by|filter|cursor"),
    ("documents and writes", r""),
]
UNIMPLEMENTED = re.compile(r"MethodNotImplemented: 501 ([^\n]{1,90})")


def area(case, failure):
    reason = UNIMPLEMENTED.search(failure.text or failure.get("message") or "")
    if reason:
        return f"not implemented: {reason[1]}"
    return next(name for name, pattern in AREAS if re.search(pattern, case.get("name")))


def main(path):
    failed = collections.Counter()
    names = collections.defaultdict(set)
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        name = (case.get("classname"), case.get("name"))
        if failure is None:
            continue
        where = area(case, failure)
        if name not in names[where]:
            names[where].add(name)
            failed[where] += 1
    for where, count in failed.most_common():
        few = sorted({name for _, name in names[where]})
        listed = "" if count > 6 else "  " + ", ".join(few)
        print(f"{count:6}  {where}{listed}")


main(sys.argv[1])
