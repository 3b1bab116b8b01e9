"""`well-meing` with google-cloud-firestore for its users and firebase-admin for its administrator."""

import datetime
import os
import queue

from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from scenario import administrator, client, denied, done, step

UTC = datetime.timezone.utc
omar, lena = client(os.environ["OMAR"]), client(os.environ["LENA"])
me = omar.document("users/user-id-200003")
cycling = me.collection("habits").document("Cycling (indoor and outdoor)")
history = cycling.collection("history")


def record(metrics, **more):
    return {"timestamp": datetime.datetime(2025, 7, 1, 8, tzinfo=UTC), "metrics": metrics, **more}


with step("A user reads and writes only their own subtree."):
    assert me.get().get("name") == "Omar Haddad"
    foreign = lena.document(cycling.path)
    denied(foreign.get)
    denied(foreign.collection("history").limit(1).get)
    denied(foreign.set, {"metrics": {}})
    denied(omar.collection("users").get)
    denied(omar.collection_group("history").limit(1).get)

with step("A history record is accepted only when each metric is declared by the habit and fits its input type."):
    history.add(record({
        "Distance": 42.5, "Climb": 300, "Route": "home", "Weather": "sun;wind", "Duration": "01:40:00", "Feeling": 5}))
    wrong = {"Distance": 42, "Climb": 4001, "Route": 7, "Weather": "snow", "Duration": "99:00:00", "Feeling": 6, "Mood": 3}
    for metric, value in wrong.items():
        denied(history.add, record({metric: value}))

with step("A user reads the history of a month, newest first, and its count, sum and average."):
    begin, end = datetime.datetime(2025, 5, 1, tzinfo=UTC), datetime.datetime(2025, 6, 1, tzinfo=UTC)
    month = history.where(filter=FieldFilter("timestamp", ">=", begin)).where(filter=FieldFilter("timestamp", "<", end))
    found = [entry.to_dict() for entry in month.order_by("timestamp", direction="DESCENDING").stream()]
    times = [entry["timestamp"] for entry in found]
    assert times == sorted(times, reverse=True) and len(times) > 5
    feelings = [e["metrics"]["Feeling"] for e in found if "Feeling" in e["metrics"]]
    assert month.count().get()[0][0].value == len(found)
    assert month.sum("metrics.Climb").get()[0][0].value == sum(e["metrics"].get("Climb", 0) for e in found)
    assert abs(month.avg("metrics.Feeling").get()[0][0].value - sum(feelings) / len(feelings)) < 1e-9

with step("A report needs its due date, and the same commit moves the next date by a week."):
    def report(database, uid, days):
        profile = database.document(f"users/{uid}")
        batch = database.batch()
        batch.create(profile.collection("reports").document("2025-07-01T08:00:00"), {"title": "A week", "content": "..."})
        batch.update(profile, {"newReportDate": datetime.datetime.now(UTC) + datetime.timedelta(days=days)})
        batch.commit()

    denied(report, omar, "user-id-200003", 7)
    denied(report, lena, "user-id-200004", 6)
    report(lena, "user-id-200004", 7)
    denied(lena.document("users/user-id-200004/reports/x").create, {"title": "Again", "content": "..."})

with step("A voice command applies in one atomic commit, or not at all."):
    def command(rating):
        batch = omar.batch()
        stretching = me.collection("habits").document("Stretching")
        batch.create(stretching, {"goal": "daily", "metrics": {"Ease": {"input": "rating"}}})
        batch.create(stretching.collection("history").document("v0"), record({"Ease": 4}))
        batch.create(stretching.collection("history").document("v1"), record({"Ease": rating}))
        batch.create(history.document("v0"), record({"Climb": 120}))
        return batch.commit()

    denied(command, 6)
    assert not me.collection("habits").document("Stretching").get().exists and not history.document("v0").get().exists
    assert len(command(5)) == 4
    try:
        command(5)
        raise AssertionError("committed twice")
    except exceptions.AlreadyExists:
        pass

with step("Open screens follow deletion and resubmission live. Other users receive nothing."):
    shown = queue.Queue()
    july = history.where(filter=FieldFilter("timestamp", ">=", datetime.datetime(2025, 7, 2, tzinfo=UTC)))
    watch = july.on_snapshot(lambda entries, changes, time: shown.put([entry.id for entry in entries]))
    assert shown.get(timeout=30) == []
    late = record({"Feeling": 4})
    late["timestamp"] = datetime.datetime(2025, 7, 3, tzinfo=UTC)
    _, first = history.add(late)
    assert shown.get(timeout=30) == [first.id]
    first.delete()
    assert shown.get(timeout=30) == []
    _, second = history.add(late)
    assert shown.get(timeout=30) == [second.id] and second.id != first.id
    watch.unsubscribe()

with step("The administrator reads the documents of users, whatever the rules."):
    database = administrator()
    assert database.document("users/user-id-200004/reports/2025-07-01T08:00:00").get().get("title") == "A week"
    assert len(list(database.collection_group("history").where(filter=FieldFilter("metrics.Ease", ">", 3)).stream())) == 2
    database.document("users/user-id-200003/habits/Seeded").set({"metrics": {"x": {"input": "text"}}})
    assert me.collection("habits").document("Seeded").get().exists

done()
