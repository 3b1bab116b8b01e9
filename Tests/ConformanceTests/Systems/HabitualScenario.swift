import Foundation
import Testing
import TestSupport

/// `habitual`, habit statistics for plain REST clients: two top-level collections, in which users see only their own
/// documents.
@Suite(.needs(.hearth))
struct HabitualScenario {
  /// A habit of Chiara with 140 records.
  private static let reading = "GOEDIcyD6PNxQU0RLqQ0"
  /// A habit of Chiara with 110 records.
  private static let writing = "NVHNwd12PQIzgD0VDQ3I"
  /// The last day of the fixture, used as today.
  private static let today = "2025-05-21"

  @Test(.timeLimit(.minutes(10))) func scenarioWorksOverREST() async throws {
    try await Scenario.run("habitual") { app in
      let chiara = try app.person("chiara")
      let ann = try app.person("ann")
      try Self.privacy(app, chiara, ann)
      try Self.tapping(app, chiara, ann)
      try Self.statistics(app, chiara)
      try Self.restCalls(app, chiara)
      try Self.deletion(app, chiara)
      try Self.log(app, chiara)
    }
  }

  @Test(.needs(.pythonClients), .timeLimit(.minutes(10))) func scenarioWorksWithPythonClients() async throws {
    try await Scenario.run("habitual") { app in
      let chiara = try app.person("chiara")
      let ann = try app.person("ann")
      app.step("sign in") { app.check(chiara.uid, "chiara") }
      try app.runPython(["CHIARA": chiara.idToken, "ANN": ann.idToken])
    }
  }

  private static func habits(of uid: String) -> AppQuery { AppQuery("habits").where("user_id", "==", .string(uid)) }

  private static func records(of uid: String, _ habit: String) -> AppQuery {
    AppQuery("records").where("user_id", "==", .string(uid)).where("habit_id", "==", .string(habit))
  }

  private static func privacy(_ app: Scenario, _ chiara: Person, _ ann: Person) throws {
    app.step("A user sees only their own habits and records, although both are top-level collections.") {
      let record = try app.fixture("records").members.first { $0.value["user_id"]?.stringValue == "chiara" }?.name ?? ""
      for path in ["habits/\(reading)", "records/\(record)"] {
        app.allow(try chiara.get(path), path)
        app.deny(try ann.get(path), path)
        app.deny(try app.visitor().get(path), path)
        app.deny(try ann.delete(path), path)
        app.deny(try ann.update(path, ["name": "mine"]), path)
      }
      let names = try chiara.find(habits(of: "chiara").order("name")).documents.compactMap { $0["name"]?.stringValue }
      app.check(names, ["Caminata", "Piano", "Read 20 pages", "Write three lines"])
    }
    app.step("List queries must carry `user_id == <uid>` and are denied otherwise.") {
      for collection in ["habits", "records"] {
        app.deny(try chiara.list(collection), collection)
        app.deny(try chiara.find(AppQuery(collection)), collection)
        app.deny(try chiara.find(AppQuery(collection).where("user_id", ">=", "chiara")), collection)
        app.deny(try chiara.find(AppQuery(collection).where("user_id", "in", ["chiara", "ann"])), collection)
        app.deny(try ann.find(AppQuery(collection).where("user_id", "==", "chiara")), collection)
        app.deny(try chiara.aggregate(AppQuery(collection), [("n", .count)]), collection)
        app.check(try ann.follow(AppQuery(collection).where("user_id", "==", "chiara")).status, 403, collection)
      }
      app.deny(try chiara.find(AppQuery("records").where("habit_id", "==", .string(reading))), "a query by habit alone")
      app.allow(try chiara.find(records(of: "chiara", reading).limit(1)))
    }
  }

  private static func tapping(_ app: Scenario, _ chiara: Person, _ ann: Person) throws {
    app.step("`user_id` is the uid of the document's creator and never changes.") {
      app.deny(try ann.create("habits", ["user_id": "chiara", "name": "Hers"]))
      app.deny(try ann.create("habits", ["name": "Nobody's"]))
      let own = try ann.create("habits", ["user_id": "ann", "name": "Stretch more"])
      app.allow(own)
      app.deny(try ann.update("habits/\(own.id)", ["user_id": "chiara"]))
      app.allow(try ann.update("habits/\(own.id)", ["name": "Stretch"]))
    }
    app.step("A user creates records only for their own habits.") {
      let when = at("\(today)T20:00:00Z")
      app.deny(
        try ann.create("records", ["user_id": "ann", "habit_id": .string(reading), "at": when]), "another's habit")
      app.deny(try ann.create("records", ["user_id": "ann", "habit_id": "none", "at": when]), "no habit")
      app.allow(
        try ann.commit([
          .create("habits/new", ["user_id": "ann", "name": "New"]),
          .create("records/new", ["user_id": "ann", "habit_id": "new", "at": when]),
        ]), "a record of a habit that the commit creates")
    }
    app.step("A tap adds one completion: a record, and an atomic increment of the day's counter.") {
      func tap(_ id: String) -> [AppWrite] {
        [
          .create(
            "records/\(id)", ["user_id": "chiara", "habit_id": .string(reading), "at": at("\(today)T20:00:00Z")]),
          .increment("habits/\(reading)", field: "days.`\(today)`", by: 1),
        ]
      }
      let day = { try chiara.get("habits/\(reading)").fields["days"]?[today]?.integerValue }
      let before = try day() ?? 0
      let screen = try chiara.follow(records(of: "chiara", reading).where("at", ">=", at("\(today)T00:00:00Z")))
      try screen.wait()
      let shown = screen.documents.count
      // Several taps at once, from one device or several.
      let (port, headers) = (chiara.port, chiara.headers)
      let target = chiara.database.url("", verb: "commit")
      let bodies = (0..<8).map { ["writes": .array(tap("tap-\($0)").map { $0.json(in: chiara.database) })] as JSONNode }
      let statuses = onThreads(8) { index in
        try? TestHTTPClient(port: port).send("POST", target, headers: headers, body: Array(bodies[index].text.utf8))
          .status
      }
      app.check(statuses, Array(repeating: 200, count: 8))
      app.check(try day(), before + 8)
      try screen.wait { $0.documents.count == shown + 8 }
      app.check(try chiara.commit(tap("tap-0")).status, 409, "the status of a repeated tap")
      app.check(try day(), before + 8, "the counter after a failed tap")
    }
  }

  private static func statistics(_ app: Scenario, _ chiara: Person) throws {
    let days = (15...21).map { "2025-05-\($0)" }
    app.step("Statistics per habit: total, last seven days, streak.") {
      let habit = try app.fixture("habits", writing)
      let counted = (habit["days"]?.members ?? []).map { ($0.name, $0.value.integerValue ?? 0) }
      let all = records(of: "chiara", writing)
      let total = try chiara.aggregate(all, [("n", .count)]).aggregates["n"]?.integerValue
      app.check(total, counted.reduce(0) { $0 + $1.1 }, "total")
      let week = try chiara.aggregate(all.where("at", ">=", at("2025-05-15T00:00:00Z")), [("n", .count)])
      app.check(
        week.aggregates["n"]?.integerValue, counted.filter { days.contains($0.0) }.reduce(0) { $0 + $1.1 }, "week")
      // The streak: one document has the counters of all days.
      let read = try chiara.get("habits/\(writing)").fields["days"]?.members ?? []
      app.check(streak(read.map(\.name)), streak(counted.map(\.0)), "the streak")
      app.check(streak(["2025-05-18", "2025-05-20", "2025-05-21"]), 2, "the streak of an example")
    }
    app.step("A chart shows the activity of seven days for one or several habits.") {
      for chosen in [[writing], [writing, reading]] {
        let query = AppQuery("records").where("user_id", "==", "chiara")
          .where("habit_id", "in", .array(chosen.map { .string($0) }))
          .where("at", ">=", at("2025-05-15T00:00:00Z")).where("at", "<", at("2025-05-22T00:00:00Z")).order("at")
        let found = try chiara.find(query)
        app.allow(found)
        for day in days {
          let counters = try chosen.map { try chiara.get("habits/\($0)").fields["days"]?[day]?.integerValue ?? 0 }
          let bar = found.documents.filter { $0["at"]?["$timestamp"]?.stringValue?.hasPrefix(day) == true }
          app.check(bar.count, counters.reduce(0, +), "\(day) of \(chosen.count) habits")
        }
      }
    }
  }

  /// The number of consecutive days up to today.
  private static func streak(_ days: [String]) -> Int {
    let done = Set(days)
    var date = Date(timeIntervalSince1970: 1_747_785_600)
    var count = 0
    while done.contains(String(date.formatted(.iso8601).prefix(10))) {
      count += 1
      date -= 86400
    }
    return count
  }

  private static func restCalls(_ app: Scenario, _ chiara: Person) throws {
    app.step("REST clients without an SDK create, list, update and delete with JSON over HTTP.") {
      let made = try chiara.create("habits", id: "water", ["user_id": "chiara", "name": "Water", "days": [:]])
      app.check(made.fields, json: ["user_id": "chiara", "name": "Water", "days": [:]])
      let page = try chiara.find(habits(of: "chiara").order("name").limit(2))
      app.check(page.documents.count, 2)
      let changed = try chiara.update("habits/water", ["name": "Water the plants"], ifUpdatedAt: made.updateTime)
      app.check(changed.fields["name"]?.stringValue, "Water the plants")
      app.allow(try chiara.delete("habits/water"))
      app.deny(try chiara.get("habits/water"), "a deleted habit")
    }
    app.step("Errors have codes that a program can handle.") {
      func expect(_ reply: Reply, _ status: Int, _ name: String) {
        app.check(reply.status, status, name)
        app.check(reply.errorStatus, name)
        app.check(reply.json["error"]?["code"]?.integerValue ?? reply.status, status, name)
        app.check(reply.errorMessage?.isEmpty == false, "the error \(name) has no message")
      }
      let habit = "habits/\(reading)"
      let url = chiara.database.url(habit)
      expect(try chiara.create("habits", id: reading, ["user_id": "chiara"]), 409, "ALREADY_EXISTS")
      expect(try chiara.send("PATCH", url, ["fields": ["name": "no type"]]), 400, "INVALID_ARGUMENT")
      expect(try chiara.send("PATCH", url, ["field": [:]]), 400, "INVALID_ARGUMENT")
      expect(
        try chiara.update(habit, ["name": "Stale"], ifUpdatedAt: "2025-01-01T00:00:00Z"), 400, "FAILED_PRECONDITION")
      expect(try chiara.send("GET", chiara.database.url("habits") + "?pageSize=-1"), 400, "INVALID_ARGUMENT")
      app.check(try chiara.send("GET", "/v1/nothing/here").status, 404, "the status of an unknown path")
      expect(try app.visitor().get(habit), 403, "PERMISSION_DENIED")
      expect(
        try app.visitor().send("GET", url, headers: [("Authorization", "Bearer x.y.z")]), 401, "UNAUTHENTICATED")
      let stranger = try app.visitor().account(
        "signInWithPassword", ["email": "chiara@example.com", "password": "wrong", "returnSecureToken": true])
      app.check(stranger.status, 400)
      app.check(stranger.errorMessage, "INVALID_LOGIN_CREDENTIALS")
      let taken = try app.visitor().account("signUp", ["email": "chiara@example.com", "password": "long enough"])
      app.check(taken.errorMessage, "EMAIL_EXISTS")
    }
  }

  private static func deletion(_ app: Scenario, _ chiara: Person) throws {
    app.step("A user deletes a habit with all its records.") {
      let screen = try chiara.follow(habits(of: "chiara"))
      try screen.wait { $0.documents.keys.contains("habits/\(writing)") }
      let found = try chiara.find(records(of: "chiara", writing)).documents
      app.check(found.count, 110)
      app.allow(try chiara.commit(found.map { .delete($0.path) } + [.delete("habits/\(writing)")]))
      try screen.wait { !$0.documents.keys.contains("habits/\(writing)") }
      app.check(
        try chiara.aggregate(records(of: "chiara", writing), [("n", .count)]).aggregates["n"]?.integerValue, 0,
        "records")
      let others = try chiara.aggregate(AppQuery("records").where("user_id", "==", "chiara"), [("n", .count)])
      app.check(others.aggregates["n"]?.integerValue, 140 + 97 + 53 + 8, "the number of records of other habits")
    }
  }

  private static func log(_ app: Scenario, _ chiara: Person) throws {
    app.step("The service logs errors and account activity.") {
      let newcomer = try app.newcomer(email: "diego@example.com")
      app.allow(try newcomer.account("delete", ["idToken": .string(newcomer.idToken)]))
      try app.waitForLog("\"chiara\"", "created")
      try app.waitForLog("\"chiara\"", "signed in with a password")
      try app.waitForLog("\"chiara\"", "failed to sign in")
      try app.waitForLog("\"\(newcomer.uid)\"", "created")
      try app.waitForLog("\"\(newcomer.uid)\"", "deleted")
      try app.breakFiles()
      let client = TestHTTPClient(port: app.server.port)
      defer { client.close() }
      app.check(try client.send("GET", "/v0/b/demo.appspot.com/o/any").status, 500, "files")
      try app.waitForLog("GET /v0/b/demo.appspot.com/o/any failed with 500: ")
      for secret in ["password of chiara", "a good password", chiara.idToken, chiara.refreshToken] {
        app.check(!app.log.contains(secret), "a secret is in the log")
      }
    }
  }
}
