"""`fit-care`: firebase-admin issues custom tokens, pyrebase4 signs users in and transfers files, google-cloud-firestore
reads and writes as the signed-in user."""

import datetime
import hashlib
import logging
import os
import time


from scenario import client, denied, done, step
from phone import Phone
from screen import Screen
import keeper
import requests
from google.api_core.exceptions import PermissionDenied
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

UTC = datetime.timezone.utc
PAST = datetime.datetime(2001, 1, 1, tzinfo=UTC)
phone = Phone()
tokens = {uid: keeper.sign_in(phone, uid) for uid in ("pat-adele", "doc-ferri", "doc-muller", "nutri-bea", "eve")}
adele, ferri, muller, bea, eve = (client(token) for token in tokens.values())
record = adele.document("patients/pat-adele")
# The library logs each listener that is denied.
logging.disable(logging.CRITICAL)


def ids(query):
    return [found.id for found in query.stream()]


def theirs(database, scope):
    return database.collection(f"patients/pat-adele/{scope}")


def denial(function):
    """The message of a denied call, or `None` if the call succeeds."""
    try:
        function()
    except PermissionDenied as error:
        return error.message
    return None


def plain(moment):
    return datetime.datetime.fromtimestamp(moment.timestamp(), UTC)


with step("Only the patient reads their record, with emergency contacts at once."):
    profile = record.get().to_dict()
    assert profile["bloodGroup"] == "A+" and profile["emergencyContacts"][0]["phone"] == "+39 02 555 1317"
    sizes = [len(ids(record.collection(scope))) for scope in ("measurements", "appointments", "documents", "medications", "meals")]
    assert sizes == [420, 17, 6, 2, 60], sizes
    denied(adele.document("patients/pat-bjorn").get)
    denied(adele.collection("patients/pat-bjorn/meals").stream)
    denied(adele.collection("patients").stream)

with step("A patient lists the appointments of a day."):
    every = [appointment.to_dict() for appointment in record.collection("appointments").order_by("start").stream()]
    first = plain(every[0]["start"])
    day = datetime.datetime(first.year, first.month, first.day, tzinfo=UTC)
    today = record.collection("appointments").where(filter=FieldFilter("start", ">=", day)).where(
        filter=FieldFilter("start", "<", day + datetime.timedelta(days=1))).order_by("start")
    found = [appointment.to_dict() for appointment in today.stream()]
    assert found and found == [appointment for appointment in every if plain(appointment["start"]).date() == day.date()]

with step("Charts show weekly, monthly and yearly averages per kind of measurement."):
    measured = [measurement.to_dict() for measurement in record.collection("measurements").stream()]
    newest = max(plain(measurement["at"]) for measurement in measured)
    for kind in {measurement["kind"] for measurement in measured}:
        for days in (7, 30, 365):
            since = newest - datetime.timedelta(days=days)
            window = record.collection("measurements").where(filter=FieldFilter("kind", "==", kind)).where(
                filter=FieldFilter("at", ">", since)).where(filter=FieldFilter("at", "<=", newest))
            answer = {number.alias: number.value for number in window.avg("value", alias="mean").count(alias="n").get()[0]}
            values = [m["value"] for m in measured if m["kind"] == kind and since < plain(m["at"]) <= newest]
            assert answer["n"] == len(values), (kind, days, answer)
            # The library returns zero as the average of no values.
            assert abs(answer["mean"] - (sum(values) / len(values) if values else 0)) < 1e-9, (kind, days, answer)

with step("A doctor reads the scopes that the share names, and writes nothing."):
    sizes = [len(ids(theirs(ferri, scope))) for scope in ("measurements", "appointments", "documents", "medications")]
    assert sizes == [420, 17, 6, 2], sizes
    denied(theirs(ferri, "meals").stream)
    denied(theirs(ferri, "measurements").add, {"kind": "weight", "value": 1})
    denied(ferri.document("shares/doc-ferri_pat-adele").update, {"expires": newest})
    denied(ferri.document("shares/doc-ferri_pat-adele").delete)

with step("A nutritionist has a share for meals."):
    eaten = [meal.to_dict() for meal in record.collection("meals").stream()]
    totals = {n.alias: n.value for n in theirs(bea, "meals").sum("energy", alias="energy").avg("protein", alias="protein").get()[0]}
    assert totals["energy"] == sum(meal["energy"] for meal in eaten)
    assert abs(totals["protein"] - sum(meal["protein"] for meal in eaten) / len(eaten)) < 1e-9
    denied(theirs(bea, "measurements").stream)

with step("Denied reads do not reveal whether a document exists."):
    one = ids(record.collection("measurements").limit(1))[0]
    for database in (muller, bea, eve):
        message = denial(theirs(database, "measurements").document(one).get)
        assert message is not None and message == denial(theirs(database, "measurements").document("none").get), message
        denied(theirs(database, "measurements").stream)
        denied(theirs(database, "measurements").count().get)
    assert denial(ferri.document("patients/pat-adele").get) == denial(ferri.document("patients/pat-nobody").get) is not None
    denied(eve.document("shares/doc-ferri_pat-adele").get)
    denied(eve.collection("shares").where(filter=FieldFilter("patient", "==", "pat-adele")).stream)

with step("Only the patient writes a share."):
    share = {"reader": "eve", "patient": "pat-adele", "scopes": ["meals"],
             "expires": datetime.datetime.now(UTC) + datetime.timedelta(hours=1)}
    denied(eve.document("shares/eve_pat-adele").set, share)
    adele.document("shares/eve_pat-adele").set(share)
    assert len(ids(theirs(eve, "meals"))) == 60
    denied(theirs(eve, "appointments").stream)
    adele.document("shares/eve_pat-adele").update({"scopes": firestore.ArrayUnion(["appointments"])})
    assert len(ids(theirs(eve, "appointments"))) == 17

with step("A reader's open screen ends with the share, before any further change."):
    screen = Screen(theirs(eve, "meals"))
    screen.shows(lambda ids: len(ids) == 60)
    record.collection("meals").document("soup").set({"food": "Soup", "protein": 8, "energy": 210})
    screen.shows(lambda ids: "soup" in ids)
    adele.document("shares/eve_pat-adele").update({"expires": PAST})
    record.collection("meals").document("secret").set({"food": "Cake"})
    screen.ends()
    assert "secret" not in screen.ids
    denied(theirs(eve, "meals").stream)

with step("A reader's open screen shows no change after the share expires."):
    for seconds in (0.6, 3, 12):  # opening a screen can outlast a short share
        end = datetime.datetime.now(UTC) + datetime.timedelta(seconds=seconds)
        adele.document("shares/eve_pat-adele").update({"expires": end})
        screen = Screen(theirs(eve, "meals"))
        if screen.opens(lambda ids: len(ids) == 62):
            break
        assert datetime.datetime.now(UTC) >= end, "refused early"
    else:
        raise AssertionError("no screen opened")
    while denial(theirs(eve, "meals").limit(1).get) is None:
        time.sleep(0.02)
    record.collection("meals").document("late").set({"food": "Chocolate"})
    screen.ends()
    assert "late" not in screen.ids and datetime.datetime.now(UTC) >= end

report = b"%PDF-1.7\n" + os.urandom(200_000)
path = "patients/pat-adele/documents/bloods-2025.pdf"
with step("PDFs are uploaded and downloaded. Their metadata has the digest."):
    stored = phone.upload(path, report, "application/pdf", tokens["pat-adele"])
    record.collection("documents").document("bloods-2025").set({
        "name": "bloods 2025.pdf", "type": stored["contentType"], "size": int(stored["size"]), "path": path,
        "sha256": hashlib.sha256(report).hexdigest(), "uploadedAt": firestore.SERVER_TIMESTAMP})
    found = theirs(ferri, "documents").document("bloods-2025").get().to_dict()
    content = phone.download(found["path"], tokens["doc-ferri"])
    assert len(content) == found["size"] and hashlib.sha256(content).hexdigest() == found["sha256"]

with step("No other caller downloads or uploads a file, or learns whether it exists."):
    for uid in ("doc-muller", "nutri-bea", "eve"):
        there, missing = [
            requests.get(phone.url(name), headers={"Authorization": f"Firebase {tokens[uid]}"}, timeout=30)
            for name in (path, "patients/pat-adele/documents/none.pdf")]
        assert there.status_code == missing.status_code == 403 and there.content == missing.content, there.text
        assert phone.refused(path, report, "application/pdf", tokens[uid])
    assert phone.refused(path, report, "application/pdf", tokens["doc-ferri"])
    assert phone.refused("patients/pat-adele/documents/x.html", b"<p>", "text/html", tokens["pat-adele"])

with step("A cached copy is valid while its ETag matches."):
    mine = {"Authorization": f"Firebase {tokens['pat-adele']}"}
    first = requests.get(phone.url(path), headers=mine, timeout=30)
    again = requests.get(phone.url(path), headers={**mine, "If-None-Match": first.headers["ETag"]}, timeout=30)
    assert first.content == report and again.status_code == 304 and not again.content
    phone.delete(path, tokens["pat-adele"])
    assert phone.download(path, tokens["pat-adele"]) is None

done()
