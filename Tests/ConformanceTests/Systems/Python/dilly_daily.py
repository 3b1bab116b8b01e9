"""`dilly-daily` with google-cloud-firestore for its users and firebase-admin for its administrator."""

import os
import queue

from google.api_core import exceptions
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import And, FieldFilter

from scenario import administrator, client, denied, done, step

giulia, marco, editor = (client(os.environ[name]) for name in ("GIULIA", "MARCO", "EDITOR"))
tablet = client(os.environ["GIULIA"])


def where(collection, *conditions):
    filters = [FieldFilter(*condition) for condition in conditions]
    return collection.where(filter=And(filters) if len(filters) > 1 else filters[0])


with step("Any caller reads both catalogues. Only an `admin` claim allows writing them."):
    recipes = {recipe.id: recipe.to_dict() for recipe in marco.collection("recipes").stream()}
    ingredients = {item.id: item.to_dict() for item in marco.collection("ingredients").stream()}
    assert len(recipes) == 61 and len(ingredients) == 121
    denied(giulia.collection("recipes").add, {"name": "Spam"})
    denied(giulia.document("ingredients/tomatoes").delete)
    editor.document("ingredients/tomatoes").update({"unitPrice": 3.3})
    assert giulia.document("ingredients/tomatoes").get().get("unitPrice") == 3.3

with step("A listener receives the catalogue, then only changes."):
    events = queue.Queue()
    watch = marco.collection("recipes").on_snapshot(lambda all, changes, time: events.put([c.document.id for c in changes]))
    assert len(events.get(timeout=30)) == 61
    editor.document("recipes/hummus").update({"servings": 6})
    assert events.get(timeout=30) == ["hummus"]
    watch.unsubscribe()

with step("Several devices stay in sync. Offline edits detect conflicting changes."):
    groceries, elsewhere = giulia.collection("users/giulia/groceries"), tablet.collection("users/giulia/groceries")
    shown = queue.Queue()
    watch = elsewhere.on_snapshot(lambda items, changes, time: shown.put({item.id: item.to_dict() for item in items}))
    known = {item.id: item for item in groceries.stream()}
    assert shown.get(timeout=30).keys() == known.keys()
    elsewhere.document("almonds").update({"quantity": 2.5})

    def send(id, fields):
        groceries.document(id).update(fields, option=giulia.write_option(last_update_time=known[id].update_time))

    send("coriander", {"checked": True})
    try:
        send("almonds", {"quantity": 4.0})
        raise AssertionError("a stale edit was accepted")
    except exceptions.FailedPrecondition:
        pass
    known["almonds"] = groceries.document("almonds").get()
    assert known["almonds"].get("quantity") == 2.5
    send("almonds", {"quantity": 4.0})
    while (now := shown.get(timeout=30))["almonds"]["quantity"] != 4 or not now["coriander"]["checked"]:
        pass
    watch.unsubscribe()

with step("Filters select by dish type, gear, name prefix and allergens."):
    catalogue = giulia.collection("recipes")

    def check(conditions, wanted):
        found = {recipe.id for recipe in where(catalogue, *conditions).stream()}
        assert found and found == {id for id, recipe in recipes.items() if wanted(recipe)}, conditions

    check([("dishTypes", "array_contains", "vegan")], lambda r: "vegan" in r["dishTypes"])
    check([("necessaryGear", "array_contains_any", ["wok", "grill"])], lambda r: {"wok", "grill"} & set(r["necessaryGear"]))
    check([("name", ">=", "Pa"), ("name", "<", "Pb")], lambda r: r["name"].startswith("Pa"))
    milky = {item.get("name") for item in where(giulia.collection("ingredients"), ("allergen", "==", "milk")).stream()}
    assert milky == {item["name"] for item in ingredients.values() if item["allergen"] == "milk"}
    assert any(milky.isdisjoint(recipe["ingredients"]) for recipe in recipes.values())

with step("A shopping list adds up the quantities of several recipes and the total price (`sum`)."):
    quantities = {}
    for id in ("spaghetti-carbonara", "risotto-allo-zafferano", "lasagne-al-forno"):
        for name, quantity in recipes[id]["ingredients"].items():
            quantities[name] = quantities.get(name, 0) + quantity
    prices = {item["name"]: item["unitPrice"] for item in ingredients.values()}
    batch = giulia.batch()
    for item in groceries.stream():
        batch.delete(item.reference)
    for name, quantity in quantities.items():
        batch.create(groceries.document(), {"name": name, "quantity": quantity, "price": quantity * prices[name], "checked": False})
    batch.commit()
    total = groceries.sum("price").get()[0][0].value
    assert abs(total - sum(quantity * prices[name] for name, quantity in quantities.items())) < 1e-6

with step("An owner shares a recipe with friends."):
    shared = marco.document("users/giulia/recipes/IIdcvWw54aUZqT4yZ56u")
    assert shared.get().exists
    denied(shared.update, {"name": "mine"})
    denied(marco.document("users/giulia/recipes/ViCh4xo0rrPnLxeO4hW7").get)
    with_marco = where(marco.collection_group("recipes"), ("sharedWith", "array_contains", "marco"))
    assert len(list(with_marco.stream())) == 2
    giulia.document("users/giulia/recipes/ViCh4xo0rrPnLxeO4hW7").update({"sharedWith": firestore.ArrayUnion(["marco"])})
    assert len(list(with_marco.stream())) == 3
    denied(where(marco.collection_group("recipes"), ("sharedWith", "array_contains", "sofia")).get)

with step("The administrator edits catalogues without a claim."):
    database = administrator()
    database.document("recipes/new").set({"name": "New", "dishTypes": []})
    assert marco.document("recipes/new").get().get("name") == "New"

done()
