"""`journeys`: pyrebase4 signs users in and transfers files, google-cloud-firestore reads and writes as the signed-in
user, firebase-admin sets claims and manages the media."""

import os

from scenario import client, denied, done, step
from phone import Phone
from screen import Screen
import keeper
import requests
from firebase_admin import auth, storage
from google.api_core.exceptions import PermissionDenied
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

phone = Phone()
guest = phone.auth.sign_in_anonymous()
uid = guest["localId"]
db = client(guest["idToken"])
mine = db.document(f"profiles/{uid}")


def ids(query):
    return [found.id for found in query.stream()]


def free(database):
    return database.collection("journeys").where(filter=FieldFilter("paid", "==", False))


def inputs(database, owner):
    return database.collection_group("inputs").where(filter=FieldFilter("uid", "==", owner))


with step("Users without a subscription list with paid == false."):
    assert ids(free(db)) == ["being-heard", "first-steps", "sleep-well"]
    denied(db.collection("journeys").stream)
    denied(db.document("journeys/grief").get)
    denied(db.collection("journeys/grief/practices/letters/exercises").order_by("order").stream)

with step("Exercises have an order."):
    exercises = db.collection("journeys/first-steps/practices/arriving/exercises").order_by("order")
    assert [exercise.get("order") for exercise in exercises.stream()] == [1, 2, 3, 4, 5, 6]

with step("An app follows references from recommended."):
    followed = []
    for pick in db.collection("recommended").order_by("order").stream():
        try:
            followed.append(pick.get("practice").get().exists)
        except PermissionDenied:
            followed.append("paid")
    assert followed == [True, True, "paid", "paid", True, True, False], followed

screen = Screen(mine.collection("practices"))
with step("Progress consists of the practices in the profile, live. Parent documents need not exist."):
    screen.shows(lambda ids: ids == [])
    batch = db.batch()
    practice = mine.collection("practices").document("arriving")
    batch.set(practice, {"rating": 4, "mood": "calm", "completedAt": firestore.SERVER_TIMESTAMP})
    batch.set(practice.collection("inputs").document("arriving-03"), {"uid": uid, "text": "tired"})
    batch.commit()
    screen.shows(lambda ids: ids == ["arriving"])
    mine.collection("practices").document("letters").collection("inputs").document("letters-03").set(
        {"uid": uid, "text": "Dear …"})
    assert ids(mine.collection("practices")) == ["arriving"] and not mine.get().exists

with step("A user reads all their own inputs across collections."):
    assert sorted(ids(inputs(db, uid))) == ["arriving-03", "letters-03"]
    denied(db.collection_group("inputs").stream)
    denied(inputs(db, "anon-5f0c2a").stream)
    denied(mine.collection("practices").document("letters").collection("inputs").document("x").set, {"uid": "anon-5f0c2a"})

with step("Only its user reads and writes a profile and everything below it."):
    denied(db.document("profiles/anon-5f0c2a").get)
    denied(db.collection("profiles/anon-5f0c2a/practices").stream)
    denied(db.document("profiles/anon-5f0c2a/practices/letters").set, {"rating": 1})

with step("A guest who is linked to an email address and a password keeps the uid and the data, on every device."):
    linked = phone.link(guest["idToken"], "mia@example.com", "correct horse")
    assert linked["localId"] == uid
    # Setting the password ends earlier sessions, so the app continues with the token of that response.
    screen.close()
    db = client(linked["idToken"])
    screen = Screen(db.collection(f"profiles/{uid}/practices"))
    screen.shows(lambda ids: ids == ["arriving"])
    member = phone.auth.sign_in_with_email_and_password("mia@example.com", "correct horse")
    assert member["localId"] == uid
    elsewhere = client(member["idToken"])
    assert ids(elsewhere.collection(f"profiles/{uid}/practices")) == ["arriving"]
    elsewhere.document(f"profiles/{uid}/practices/noticing-breath").set({"rating": 5})
    screen.shows(lambda ids: ids == ["arriving", "noticing-breath"])
    screen.close()

with step("Paid journeys need a subscriber claim."):
    denied(elsewhere.document("journeys/grief").get)
    auth.set_custom_user_claims(uid, {"subscriber": True})
    paid_token = phone.auth.refresh(member["refreshToken"])["idToken"]
    paying = client(paid_token)
    assert len(ids(paying.collection("journeys"))) == 6 and paying.document("journeys/grief").get().exists
    denied(paying.document("journeys/grief").update, {"paid": False})

with step("Only an admin claim allows writing content and listing everything, across collections."):
    auth.create_user(uid="editor")
    auth.set_custom_user_claims("editor", {"admin": True})
    tool_token = keeper.sign_in(phone, "editor")
    tool = client(tool_token)
    assert tool.collection_group("exercises").count().get()[0][0].value == 201
    denied(paying.collection_group("exercises").count().get)
    denied(tool.document(f"profiles/{uid}/practices/arriving").get)
    denied(inputs(tool, uid).stream)
    screen = Screen(free(db))
    screen.shows(lambda ids: ids == ["being-heard", "first-steps", "sleep-well"])
    batch = tool.batch()
    journey = tool.document("journeys/new-year")
    batch.set(journey, {"title": "New year", "paid": False, "authors": ["Mira Osei"]})
    batch.set(journey.collection("practices").document("looking-back"), {"topic": "time", "duration": 10})
    batch.set(journey.collection("practices/looking-back/exercises").document("one"), {
        "order": 1, "text": "Breathe.", "imageURL": "journeys/new-year/one.webp"})
    batch.commit()
    screen.shows(lambda ids: ids == ["being-heard", "first-steps", "new-year", "sleep-well"])
    journey.update({"paid": True})
    screen.shows(lambda ids: ids == ["being-heard", "first-steps", "sleep-well"])
    denied(db.document("journeys/new-year").get)

image, audio, film = os.urandom(40_000), os.urandom(300_000), os.urandom(1_500_000)
with step("Subscribers download images and audio from the file storage, also in ranges."):
    assert phone.upload("journeys/new-year/one.webp", image, "image/webp", tool_token)["contentType"] == "image/webp"
    stored = phone.upload("journeys/new-year/one.ogg", audio, "audio/ogg", tool_token)
    seen = paying.document("journeys/new-year/practices/looking-back/exercises/one").get().get("imageURL")
    assert phone.download(seen, paid_token) == image
    assert phone.download("journeys/new-year/one.ogg", paid_token) == audio
    visitor = phone.auth.sign_in_anonymous()["idToken"]
    assert phone.download("journeys/new-year/one.ogg", visitor) is None
    url = phone.url("journeys/new-year/one.ogg")
    part = requests.get(url, headers={"Authorization": f"Firebase {paid_token}", "Range": "bytes=1000-1999"}, timeout=30)
    assert part.status_code == 206 and part.content == audio[1000:2000]

with step("Only a link with the file's token works without signing in."):
    assert requests.get(url, timeout=30).status_code == 403
    assert requests.get(f"{url}&token={stored['downloadTokens']}", timeout=30).content == audio
    assert requests.get(f"{url}&token=00000000-0000-4000-8000-000000000000", timeout=30).status_code == 403

with step("Uploads by other users, of another type, or to other places are denied."):
    assert phone.refused("journeys/new-year/page.html", b"<p>", "text/html", tool_token)
    assert phone.refused("journeys/new-year/two.webp", image, "image/webp", paid_token)
    assert phone.refused("profiles/anon-5f0c2a/x.ogg", b"x", "audio/ogg", paid_token)
    phone.upload(f"profiles/{uid}/letters-03.ogg", audio[:5000], "audio/ogg", paid_token)
    assert phone.download(f"profiles/{uid}/letters-03.ogg", paid_token) == audio[:5000]
    assert phone.download(f"profiles/{uid}/letters-03.ogg", tool_token) is None

with step("The administrator's library uploads a film in parts and lists files."):
    bucket = storage.bucket()
    video = bucket.blob("journeys/first-steps/intro.mp4", chunk_size=1 << 20)
    video.upload_from_string(film, content_type="video/mp4")
    assert bucket.blob("journeys/first-steps/intro.mp4").download_as_bytes() == film
    assert phone.download("journeys/first-steps/intro.mp4", visitor) == film
    assert [blob.name for blob in bucket.list_blobs(prefix="journeys/new-year/")] == [
        "journeys/new-year/one.ogg", "journeys/new-year/one.webp"]

done()
