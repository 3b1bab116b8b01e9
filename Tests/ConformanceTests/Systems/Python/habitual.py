"""`habitual` with google-cloud-firestore for its users and firebase-admin for its administrator."""

import datetime
import os
import queue

from google.cloud import firestore
from google.cloud.firestore_v1.base_query import And, FieldFilter

from scenario import administrator, client, denied, done, step

UTC = datetime.timezone.utc
READING, WRITING = "GOEDIcyD6PNxQU0RLqQ0", "NVHNwd12PQIzgD0VDQ3I"
chiara, ann = client(os.environ["CHIARA"]), client(os.environ["ANN"])
today = datetime.datetime(2025, 5, 21, tzinfo=UTC)


def own(database, uid, *filters):
    conditions = [FieldFilter("user_id", "==", uid), *filters]
    return database.where(filter=And(conditions) if filters else conditions[0])


records = chiara.collection("records")
of_reading = own(records, "chiara", FieldFilter("habit_id", "==", READING))

with step("A user sees only their own habits and records. Lists must have `user_id == <uid>`."):
    names = [habit.get("name") for habit in own(chiara.collection("habits"), "chiara").order_by("name").stream()]
    assert names == ["Caminata", "Piano", "Read 20 pages", "Write three lines"]
    denied(ann.document(f"habits/{READING}").get)
    denied(chiara.collection("habits").get)
    denied(own(ann.collection("records"), "chiara").get)
    denied(records.where(filter=FieldFilter("habit_id", "==", READING)).get)
    denied(chiara.collection("records").count().get)

with step("A user creates records only for their own habits, and `user_id` never changes."):
    denied(ann.collection("records").add, {"user_id": "ann", "habit_id": READING, "at": today})
    denied(ann.collection("habits").add, {"user_id": "chiara", "name": "Hers"})
    _, habit = ann.collection("habits").add({"user_id": "ann", "name": "Stretch"})
    denied(habit.update, {"user_id": "chiara"})

with step("A tap adds one completion: a record, and an atomic increment of the day's counter. Screens follow."):
    shown = queue.Queue()
    last_days = of_reading.where(filter=FieldFilter("at", ">=", today))
    watch = last_days.on_snapshot(lambda entries, changes, time: shown.put(len(entries)))
    before = shown.get(timeout=30)
    habit = chiara.document(f"habits/{READING}")
    count = habit.get().to_dict()["days"].get("2025-05-21", 0)
    for _ in range(3):
        batch = chiara.batch()
        batch.create(records.document(), {"user_id": "chiara", "habit_id": READING, "at": firestore.SERVER_TIMESTAMP})
        batch.update(habit, {"days.`2025-05-21`": firestore.Increment(1)})
        batch.commit()
    while shown.get(timeout=30) < before + 3:
        pass
    watch.unsubscribe()
    assert habit.get().to_dict()["days"]["2025-05-21"] == count + 3

with step("Statistics per habit and a chart of several habits are correct."):
    assert own(records, "chiara", FieldFilter("habit_id", "==", WRITING)).count().get()[0][0].value == 110
    week = datetime.datetime(2025, 5, 15, tzinfo=UTC)
    chart = own(records, "chiara", FieldFilter("habit_id", "in", [READING, WRITING]), FieldFilter("at", ">=", week),
                FieldFilter("at", "<", today + datetime.timedelta(days=1)))
    days = {}
    for record in chart.order_by("at").stream():
        day = record.get("at").date().isoformat()
        days[day] = days.get(day, 0) + 1
    counters = [chiara.document(f"habits/{id}").get().to_dict()["days"] for id in (READING, WRITING)]
    for day in range(15, 21):
        assert days.get(f"2025-05-{day}", 0) == sum(c.get(f"2025-05-{day}", 0) for c in counters), day

with step("A user deletes a habit with all its records."):
    batch = chiara.batch()
    for record in own(records, "chiara", FieldFilter("habit_id", "==", WRITING)).stream():
        batch.delete(record.reference)
    batch.delete(chiara.document(f"habits/{WRITING}"))
    assert len(batch.commit()) == 111
    assert own(records, "chiara", FieldFilter("habit_id", "==", WRITING)).count().get()[0][0].value == 0

with step("The administrator lists the documents of all users."):
    database = administrator()
    assert database.collection("habits").count().get()[0][0].value == 15
    assert database.document(f"habits/{READING}").get().get("user_id") == "chiara"

done()
