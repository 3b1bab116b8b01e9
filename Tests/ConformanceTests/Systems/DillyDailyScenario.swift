import Foundation
import Testing
import TestSupport

/// `dilly-daily`, recipes and meal plans, offline first: two public catalogues, and data that users keep or share.
@Suite(.needs(.hearth))
struct DillyDailyScenario {
  @Test(.timeLimit(.minutes(10))) func scenarioWorksOverREST() async throws {
    try await Scenario.run("dilly-daily") { app in
      let giulia = try app.person("giulia")
      let editor = try app.person("editor", claims: #"{"admin": true}"#)
      try Self.catalogues(app, editor)
      try Self.offline(app, giulia, try app.again(giulia))
      try Self.filters(app, giulia)
      try Self.shoppingList(app, giulia)
      try Self.sharing(app, giulia)
    }
  }

  @Test(.needs(.pythonClients), .timeLimit(.minutes(10))) func scenarioWorksWithPythonClients() async throws {
    try await Scenario.run("dilly-daily") { app in
      let giulia = try app.person("giulia")
      let marco = try app.person("marco")
      let editor = try app.person("editor", claims: #"{"admin": true}"#)
      app.step("sign in") { app.check(giulia.uid, "giulia") }
      try app.runPython(["GIULIA": giulia.idToken, "MARCO": marco.idToken, "EDITOR": editor.idToken])
    }
  }

  private static func catalogues(_ app: Scenario, _ editor: Person) throws {
    let visitor = app.visitor()
    let counts = [("recipes", try app.fixture("recipes")), ("ingredients", try app.fixture("ingredients"))]
    app.step("Any caller, signed in or not, reads both catalogues. Only an `admin` claim allows writing them.") {
      let newcomer = try app.newcomer()
      for (catalogue, _) in counts {
        for person in [visitor, newcomer, editor] { app.allow(try person.list(catalogue, [("pageSize", "1")])) }
        for person in [visitor, newcomer] {
          app.deny(try person.create(catalogue, ["name": "Spam"]))
          app.deny(try person.delete("\(catalogue)/pancakes"))
        }
        let made = try editor.create(catalogue, ["name": "Draft"])
        app.allow(made)
        app.allow(try editor.delete("\(catalogue)/\(made.id)"))
      }
    }
    app.step("At start, a client fetches both catalogues completely and keeps them.") {
      for (catalogue, fixture) in counts {
        let whole = try visitor.list(catalogue, [("pageSize", "1000")])
        app.check(whole.documents.count, fixture.members.count, catalogue)
        app.check(whole.json["nextPageToken"] == nil, "\(catalogue) does not fit one page")
        for document in whole.documents where document.id == "pancakes" || document.id == "saffron" {
          app.check(document.fields["name"]?.stringValue, fixture[document.id]?["name"]?.stringValue)
        }
      }
    }
    app.step("A client checks at low cost whether a catalogue changed: ETag and 304.") {
      let page = [("pageSize", "1000")]
      let etag = try visitor.list("recipes", page).etag
      app.check(etag != nil, "a list has no ETag")
      let same = try visitor.list("recipes", page, ifNoneMatch: etag)
      app.check(same.status, 304)
      app.check(same.json.members.isEmpty, "a 304 has a body")
      app.allow(try editor.update("ingredients/tomatoes", ["unitPrice": 3.4]))
      app.check(
        try visitor.list("recipes", page, ifNoneMatch: etag).status, 304, "after a change of the other catalogue")
      app.allow(try editor.update("recipes/pancakes", ["summary": "Thin ones."]))
      let changed = try visitor.list("recipes", page, ifNoneMatch: etag)
      app.check(changed.status, 200)
      app.check(changed.etag != etag, "a changed list has the same ETag")
    }
    app.step("A listener resumes where it stopped.") {
      let first = try visitor.follow("recipes")
      try first.wait()
      app.check(first.documents.count, counts[0].1.members.count)
      let token = first.resumeToken
      first.disconnect()
      let nothing = try visitor.follow("recipes", resumingAt: token)
      try nothing.wait()
      app.check(nothing.reported, [], "the feed's report without a change")
      nothing.disconnect()
      app.allow(try editor.update("recipes/hummus", ["servings": 6]))
      app.allow(try editor.delete("recipes/satay"))
      let back = try visitor.follow("recipes", resumingAt: token)
      try back.wait { $0.reported.count >= 2 }
      app.check(Set(back.reported), ["recipes/hummus", "recipes/satay"])
      app.check(back.documents["recipes/hummus"]?["servings"], json: 6)
      app.check(back.documents["recipes/satay"] == nil, "a deleted recipe is still shown")
    }
  }

  private static func offline(_ app: Scenario, _ phone: Person, _ tablet: Person) throws {
    app.step("`users/{uid}` and everything below it belongs to the user.") {
      let marco = try app.newcomer()
      for path in ["users/giulia", "users/giulia/groceries/pears"] {
        app.allow(try phone.get(path), path)
        app.deny(try marco.get(path), path)
        app.deny(try app.visitor().get(path), path)
        app.deny(try marco.update(path, ["checked": true]), path)
      }
    }
    app.step("Several devices stay in sync.") {
      let (here, there) = (try phone.follow("users/giulia/groceries"), try tablet.follow("users/giulia/groceries"))
      try here.wait()
      try there.wait()
      app.check(here.documents.keys.sorted(), there.documents.keys.sorted())
      app.allow(try phone.update("users/giulia/groceries/pears", ["checked": true]))
      for screen in [here, there] {
        try screen.wait { $0.documents["users/giulia/groceries/pears"]?["checked"]?.text == "true" }
      }
      let plan = try phone.follow("users/giulia")
      try plan.wait()
      app.allow(try tablet.update("users/giulia", ["persons": 3]))
      try plan.wait { $0.documents["users/giulia"]?["persons"]?.integerValue == 3 }
      let week = JSONNode.array((0..<7).map { ["lunch": "hummus", "dinner": $0 == 6 ? .null : "pancakes"] })
      app.allow(try tablet.update("users/giulia", ["weekMeals": week, "diet": ["excludes": ["nuts"]], "patience": 5]))
      try plan.wait { $0.documents["users/giulia"]?["weekMeals"]?.isSame(as: week) == true }
      app.check(plan.documents["users/giulia"]?["persons"], json: 3, "a field that the change does not name")
    }
    app.step("Offline edits wait, and apply later unless another device was faster.") {
      func path(_ id: String) -> String { "users/giulia/groceries/\(id)" }
      // Both devices know this state when the phone loses its connection.
      let screen = try phone.follow("users/giulia/groceries")
      try screen.wait()
      let token = screen.resumeToken
      screen.disconnect()
      let known = try phone.list("users/giulia/groceries").documents
      let times = Dictionary(uniqueKeysWithValues: known.map { ($0.id, $0.updateTime) })
      // Meanwhile the tablet makes changes.
      app.allow(try tablet.update(path("almonds"), ["quantity": 2.5]))
      app.allow(try tablet.delete(path("mozzarella")))
      // The phone sends its queue when it is online again. Each edit requires the state that it was made on.
      let edits: [(id: String, fields: JSONNode)] = [
        ("coriander", ["checked": true]), ("almonds", ["quantity": 4.0]), ("mozzarella", ["checked": true]),
      ]
      let answers = try edits.map { try phone.update(path($0.id), $0.fields, ifUpdatedAt: times[$0.id]) }
      app.check(answers.map(\.status), [200, 400, 400], "the statuses")
      app.check(answers.map(\.errorStatus), [nil, "FAILED_PRECONDITION", "FAILED_PRECONDITION"])
      // The phone catches up: it receives only the changes. Then its user decides again.
      let back = try phone.follow("users/giulia/groceries", resumingAt: token)
      try back.wait { Set($0.reported) == Set(["almonds", "mozzarella", "coriander"].map(path)) }
      app.check(back.documents[path("almonds")]?["quantity"], json: 2.5)
      let fresh = try phone.get(path("almonds"))
      app.allow(try phone.update(path("almonds"), ["quantity": 4.0], ifUpdatedAt: fresh.updateTime))
      try back.wait { $0.documents[path("almonds")]?["quantity"]?.number == 4 }
      app.check(try tablet.get(path("almonds")).fields["quantity"], json: 4.0)
    }
    app.step("Edits that cannot conflict need no precondition: each device adds a favorite.") {
      func favorite(_ recipe: String) -> JSONNode {
        [
          "transform": [
            "document": .string(phone.database.name("users/giulia")),
            "fieldTransforms": [
              ["fieldPath": "favorites", "appendMissingElements": ["values": [["stringValue": .string(recipe)]]]]
            ],
          ]
        ]
      }
      for (device, recipe) in [(phone, "hummus"), (tablet, "granola"), (tablet, "hummus")] {
        let commit = phone.database.url("", verb: "commit")
        app.allow(try device.send("POST", commit, ["writes": [favorite(recipe)]]))
      }
      let favorites = try phone.get("users/giulia").fields["favorites"]?.elements.compactMap(\.stringValue) ?? []
      app.check(Array(favorites.suffix(2)), ["hummus", "granola"])
    }
  }

  private static func filters(_ app: Scenario, _ giulia: Person) throws {
    let recipes = try giulia.list("recipes", [("pageSize", "1000")]).documents
    func has(_ document: Document, _ field: String, _ wanted: [String]) -> Bool {
      document[field]?.elements.contains { wanted.contains($0.stringValue ?? "") } == true
    }
    func expect(_ query: AppQuery, _ what: String, _ isWanted: (Document) -> Bool) throws {
      let found = try giulia.find(query)
      app.allow(found, what)
      app.check(found.documents.map(\.id).sorted(), recipes.filter(isWanted).map(\.id).sorted(), what)
      app.check(!found.documents.isEmpty, "\(what) finds nothing")
    }
    app.step("Filters select by dish type, gear and name prefix (`array-contains`, `array-contains-any`).") {
      let all = AppQuery("recipes")
      try expect(all.where("dishTypes", "contains", "vegan"), "vegan") { has($0, "dishTypes", ["vegan"]) }
      try expect(all.where("dishTypes", "contains-any", ["soup", "salad"]), "soups, salads") {
        has($0, "dishTypes", ["soup", "salad"])
      }
      try expect(all.where("necessaryGear", "contains-any", ["wok", "grill"]), "gear") {
        has($0, "necessaryGear", ["wok", "grill"])
      }
      try expect(all.where("dishTypes", "contains", "baked").where("name", ">=", "L").where("name", "<", "M"), "L…") {
        has($0, "dishTypes", ["baked"]) && $0["name"]?.stringValue?.hasPrefix("L") == true
      }
      try expect(all.where("name", ">=", "Pa").where("name", "<", "Pa\u{F8FF}").order("name"), "Pa…") {
        $0["name"]?.stringValue?.hasPrefix("Pa") == true
      }
      try expect(all.where("name", ">=", "Bœ").where("name", "<", "Bœ\u{F8FF}"), "Bœ…") {
        $0["name"]?.stringValue?.hasPrefix("Bœ") == true
      }
    }
    app.step("Filters exclude allergens.") {
      let excluded = ["milk", "nuts"]
      let query = AppQuery("ingredients").where("allergen", "in", .array(excluded.map { .string($0) }))
      let names = Set(try giulia.find(query).documents.compactMap { $0["name"]?.stringValue })
      let stored = try app.fixture("ingredients").members.filter {
        excluded.contains($0.value["allergen"]?.stringValue ?? "")
      }
      app.check(names, Set(stored.compactMap { $0.value["name"]?.stringValue }))
      let allowed = recipes.filter { recipe in
        recipe["ingredients"]?.members.contains { names.contains($0.name) } == false
      }
      app.check(!allowed.isEmpty && allowed.count < recipes.count, "\(allowed.count) of \(recipes.count) remain")
      // The server can also find ingredients that have an allergen, but none of these.
      let others = try giulia.find(
        AppQuery("ingredients").where("allergen", "not-in", .array(excluded.map { .string($0) })))
      app.check(
        others.documents.contains { excluded.contains($0["allergen"]?.stringValue ?? "") }, false, "excluded allergens")
    }
    app.step("Filters select by time.") {
      // The steps contain the times. A user's own recipe also stores their sum, so that a query can find it.
      for (id, minutes) in [("toast", 10), ("stew", 150), ("omelette", 15)] {
        app.allow(
          try giulia.set(
            "users/giulia/recipes/\(id)",
            [
              "name": .string(id), "personalized": true, "minutes": .number(String(minutes)),
              "steps": [
                ["description": "Cook.", "duration": .number(String(minutes)), "type": "cooking", "ingredients": []]
              ],
            ]))
      }
      let quick = AppQuery("users/giulia/recipes").where("minutes", "<=", 30).order("minutes")
      app.check(try giulia.find(quick).documents.map(\.id), ["toast", "omelette"])
      // The client has the whole catalogue.
      let minutes = recipes.map { recipe in
        recipe["steps"]?.elements.reduce(0) { $0 + ($1["duration"]?.integerValue ?? 0) } ?? 0
      }
      app.check(minutes.contains { $0 <= 30 } && minutes.contains { $0 > 30 }, "the catalogue has no times")
    }
  }

  private static func shoppingList(_ app: Scenario, _ giulia: Person) throws {
    app.step("A shopping list adds up the quantities of several recipes and the total price (`sum`).") {
      let chosen = ["spaghetti-carbonara", "risotto-allo-zafferano", "lasagne-al-forno"]
      var quantities: [String: Double] = [:]
      for recipe in chosen {
        for member in try giulia.get("recipes/\(recipe)").fields["ingredients"]?.members ?? [] {
          quantities[member.name, default: 0] += member.value.number ?? 0
        }
      }
      app.check(quantities["Parmesan"].map { ($0 * 100).rounded() / 100 }, 1.2, "the parmesan of two recipes")
      let names = quantities.keys.sorted()
      var prices: [String: Double] = [:]
      for start in stride(from: 0, to: names.count, by: 30) {
        let some = names[start..<min(start + 30, names.count)]
        let query = AppQuery("ingredients").where("name", "in", .array(some.map { .string($0) }))
        for document in try giulia.find(query).documents {
          prices[document["name"]?.stringValue ?? ""] = document["unitPrice"]?.number
        }
      }
      app.check(prices.count, names.count, "the number of ingredients with a price")
      let before = try giulia.list("users/giulia/groceries").documents.map { AppWrite.delete($0.path) }
      app.allow(try giulia.commit(before))
      let items = names.enumerated().map { index, name in
        AppWrite.create(
          "users/giulia/groceries/item-\(index)",
          [
            "name": .string(name), "quantity": .number("\(quantities[name] ?? 0)"), "checked": false,
            "price": .number("\((quantities[name] ?? 0) * (prices[name] ?? 0))"),
          ])
      }
      app.allow(try giulia.commit(items))
      let total = names.reduce(0) { $0 + (quantities[$1] ?? 0) * (prices[$1] ?? 0) }
      let sum = try giulia.aggregate(AppQuery("users/giulia/groceries"), [("total", .sum("price")), ("items", .count)])
      app.check(sum.aggregates["items"]?.integerValue, names.count)
      app.check(
        abs((sum.aggregates["total"]?.number ?? 0) - total) < 1e-6 && total > 1, "the total is \(sum.json.text)")
      app.allow(try giulia.update("users/giulia/groceries/item-0", ["checked": true]))
      let open = AppQuery("users/giulia/groceries").where("checked", "==", false)
      let rest = try giulia.aggregate(open, [("total", .sum("price"))])
      let first = names.first.map { (quantities[$0] ?? 0) * (prices[$0] ?? 0) } ?? 0
      app.check(
        abs((rest.aggregates["total"]?.number ?? -1) - (total - first)) < 1e-6 && first > 0,
        "without checked items, the total is \(rest.json.text)")
    }
  }

  private static func sharing(_ app: Scenario, _ giulia: Person) throws {
    app.step("An owner shares a recipe with friends: `sharedWith` lists the uids that may read it.") {
      let (marco, sofia) = (try app.person("marco"), try app.person("sofia"))
      let shared = "users/giulia/recipes/IIdcvWw54aUZqT4yZ56u"
      app.allow(try marco.get(shared))
      app.deny(try sofia.get(shared))
      app.deny(try app.visitor().get(shared))
      app.deny(try marco.update(shared, ["name": "mine"]), "a friend's change")
      app.deny(try marco.get("users/giulia/recipes/ViCh4xo0rrPnLxeO4hW7"), "a recipe that is not shared")
      app.deny(try marco.list("users/giulia/recipes"), "all recipes of the owner")
      let query = AppQuery(group: "recipes").where("sharedWith", "contains", "marco")
      let found = try marco.find(query)
      app.check(found.documents.count, 2, "the number of recipes shared with Marco")
      app.check(found.documents.allSatisfy { $0["sharedWith"]?.text.contains("\"marco\"") == true }, "an unshared one")
      app.deny(try sofia.find(query), "recipes shared with another user")
      let screen = try marco.follow(query)
      try screen.wait()
      app.allow(try giulia.update("users/giulia/recipes/ViCh4xo0rrPnLxeO4hW7", ["sharedWith": ["sofia", "marco"]]))
      try screen.wait { $0.documents.count == 3 }
      app.allow(try giulia.update(shared, ["sharedWith": []]))
      try screen.wait { $0.documents.count == 2 && $0.documents[shared] == nil }
      app.deny(try marco.get(shared), "a recipe that is no longer shared")
    }
  }
}
