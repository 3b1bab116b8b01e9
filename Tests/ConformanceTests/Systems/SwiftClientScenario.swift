import Foundation
import HearthClient
import Testing
import TestSupport

/// Scenarios of applications that use the Swift client, with types of their own.
@Suite(.needs(.hearth))
struct SwiftClientScenario {
  private struct Habit: Codable, Sendable {
    var description: String?
    var goal: String?
    var metrics: [String: Metric]
  }

  private struct Metric: Codable, Sendable {
    var input: String
    var config: Config?

    struct Config: Codable, Sendable {
      var type: String?
      var min: Double?
      var max: Double?
      var boxes: [String]?
    }
  }

  private struct Record: Codable, Sendable {
    var timestamp: Date
    var notes: String?
    var metrics: [String: Value]
  }

  private struct Recipe: Codable, Sendable {
    var name: String
    var servings: Int?
    var sharedWith: [String]?
  }

  private struct Grocery: Codable, Sendable {
    var name: String
    var quantity: Double
    var checked: Bool
  }

  @Test(.timeLimit(.minutes(10))) func wellMeingWorks() async throws {
    try await Scenario.run("well-meing") { app in
      let omar = try app.swiftClient("user-id-200003")
      let lena = try app.swiftClient("user-id-200004")
      let habits = omar.document("users/user-id-200003").collection("habits")
      let history = habits.document("Cycling (indoor and outdoor)").collection("history")
      try Self.records(app, omar, lena, history)
      try Self.commits(app, omar, lena, habits)
      app.step("A user deletes a submission, and resubmission gets a new id. Open screens follow live.") {
        let shown = try awaitResult {
          let july = history.where("timestamp", .greaterThan, .timestamp(.init(date("2025-07-01T00:00:00Z"))))
          var screen = july.snapshots(as: Record.self).makeAsyncIterator()
          var shown = [try await screen.next()?.documents.map(\.id)]
          let ride = Record(timestamp: date("2025-07-03T18:00:00Z"), metrics: ["Distance": 31.5, "Feeling": 4])
          let first = try await history.add(ride)
          shown.append(try await screen.next()?.documents.map(\.id))
          try await first.delete()
          shown.append(try await screen.next()?.documents.map(\.id))
          let second = try await history.add(ride)
          shown.append(try await screen.next()?.documents.map(\.id))
          return (shown, [[], [first.id], [], [second.id]], first.id != second.id)
        }
        app.check(shown.0, shown.1, "the screen")
        app.check(shown.2, "the new record has the old id")
      }
    }
  }

  private static func records(
    _ app: Scenario, _ omar: Hearth, _ lena: Hearth, _ history: CollectionReference
  ) throws {
    app.step("A user reads and writes only their own subtree.") {
      let seen = try awaitResult {
        let habit = try await history.client.document("users/user-id-200003/habits/Weight").get(as: Habit.self)
        return (
          habit.data?.metrics["kg"]?.config?.max,
          try await refusal { _ = try await lena.document("users/user-id-200003").get() },
          try await refusal { _ = try await lena.collection(history.path).limit(to: 1).get() }
        )
      }
      app.check(seen.0, 140, "the maximum of a slider")
      app.check(seen.1, .permissionDenied)
      app.check(seen.2, .permissionDenied)
    }
    app.step("A history record is accepted only when each metric is declared by the habit and fits its input type.") {
      let fits: [String: Value] = [
        "Distance": 42.5, "Climb": 300, "Route": "home", "Weather": "sun;wind", "Duration": "01:40:00", "Feeling": 5,
      ]
      let wrong: [String: Value] = [
        "Distance": 42, "Climb": 4001, "Route": 7, "Weather": "snow", "Duration": "99:00:00", "Feeling": 6, "Mood": 3,
      ]
      let answers = try awaitResult {
        let when = date("2024-01-01T10:00:00Z")
        let made = try await history.add(Record(timestamp: when, metrics: fits)).get(as: Record.self).data?.metrics
        var refusals: [HearthClientError.Code?] = []
        for (metric, value) in wrong {
          refusals.append(
            try await refusal { _ = try await history.add(Record(timestamp: when, metrics: [metric: value])) })
        }
        return (made, refusals)
      }
      app.check(answers.0, fits)
      app.check(answers.1, Array(repeating: .permissionDenied, count: wrong.count))
    }
    app.step("A user reads the history of a month, newest first, and its count, sum and average.") {
      let month = try awaitResult {
        let month = history.where("timestamp", .greaterThanOrEqual, .timestamp(.init(date("2025-05-01T00:00:00Z"))))
          .where("timestamp", .lessThan, .timestamp(.init(date("2025-06-01T00:00:00Z"))))
        return (
          try await month.order(by: "timestamp", descending: true).get(as: Record.self).data,
          try await month.count(), try await month.sum(of: "metrics.Climb"),
          try await month.average(of: "metrics.Feeling")
        )
      }
      let (records, count, climb, feeling) = month
      app.check(
        !records.isEmpty && records.map(\.timestamp) == records.map(\.timestamp).sorted(by: >), "not newest first")
      app.check(count, records.count)
      app.check(climb, .integer(records.reduce(0) { $0 + ($1.metrics["Climb"]?.whole ?? 0) }))
      let feelings = records.compactMap { $0.metrics["Feeling"]?.whole }
      let average = Double(feelings.reduce(0, +)) / Double(feelings.count)
      app.check(abs((feeling ?? 0) - average) < 1e-9, "the average is \(String(describing: feeling)), not \(average)")
    }
  }

  private static func commits(
    _ app: Scenario, _ omar: Hearth, _ lena: Hearth, _ habits: CollectionReference
  ) throws {
    app.step("A report needs its due date, and the same commit moves the next date by a week.") {
      @Sendable func report(_ client: Hearth, _ uid: String, days: Double) async throws {
        let profile = client.document("users/\(uid)")
        var batch = client.batch()
        try batch.create(
          profile.collection("reports").document("2025-07-01T08:00:00"), ["title": "A week", "content": "..."])
        batch.update(profile, ["newReportDate": Date(timeIntervalSinceNow: days * 86400)])
        _ = try await batch.commit()
      }
      let answers = try awaitResult {
        [
          try await refusal { try await report(omar, "user-id-200003", days: 7) },
          try await refusal { try await report(lena, "user-id-200004", days: 6) },
          try await refusal { try await report(lena, "user-id-200004", days: 7) },
          try await refusal { try await report(lena, "user-id-200004", days: 7) },
        ]
      }
      app.check(answers, [.permissionDenied, .permissionDenied, nil, .permissionDenied])
    }
    app.step("A voice command applies in one atomic commit of many writes, or not at all.") {
      @Sendable func command(_ ease: Int) async throws -> Int {
        let stretching = habits.document("Stretching")
        var batch = omar.batch()
        try batch.create(stretching, Habit(goal: "daily", metrics: ["Ease": Metric(input: "rating")]))
        for (id, value) in [("v0", 4), ("v1", ease)] {
          let record = Record(timestamp: date("2025-06-30T06:00:00Z"), metrics: ["Ease": .integer(value)])
          try batch.create(stretching.collection("history").document(id), record)
        }
        return try await batch.commit().count
      }
      let answers = try awaitResult {
        (
          try await refusal { _ = try await command(6) },
          try await habits.document("Stretching").get().exists,
          try await command(5), try await refusal { _ = try await command(5) }
        )
      }
      app.check(answers.0, .permissionDenied)
      app.check(answers.1, false, "whether a habit of a failed command exists")
      app.check(answers.2, 3, "writes")
      app.check(answers.3, .alreadyExists)
    }
  }

  @Test(.timeLimit(.minutes(10))) func dillyDailyWorks() async throws {
    try await Scenario.run("dilly-daily") { app in
      let phone = try app.swiftClient("giulia")
      let marco = try app.swiftClient("marco")
      let editor = try app.swiftClient("editor", claims: #"{"admin": true}"#)
      let visitor = Hearth(url: app.url, project: "demo")
      app.step("At start, a client checks at low cost for changes, or resumes where it stopped.") {
        let seen = try awaitResult {
          let recipes = visitor.collection("recipes")
          let whole = try await recipes.page(as: Recipe.self, size: 1000)
          let same = try await recipes.page(as: Recipe.self, size: 1000, unless: whole?.tag)
          var screen = recipes.snapshots(as: Recipe.self).makeAsyncIterator()
          let first = try await screen.next()
          try await editor.document("recipes/hummus").update(["servings": 6])
          let changed = try await recipes.page(as: Recipe.self, size: 1000, unless: whole?.tag)
          var back = recipes.snapshots(as: Recipe.self, resumingFrom: first?.resumeToken).makeAsyncIterator()
          let since = try await back.next()
          return (
            whole?.documents.count, same == nil, first?.documents.count, changed?.documents.count,
            since?.changes.map(\.document.id), try await screen.next()?.changes.map(\.document.data?.servings)
          )
        }
        app.check(seen.0, 61, "recipes")
        app.check(seen.1, "an unchanged catalogue is sent again")
        app.check(seen.2, 61, "the number of recipes on the screen")
        app.check(seen.3, 61, "the number of recipes after a change")
        app.check(seen.4, ["hummus"], "the recipes that changed")
        app.check(seen.5, [6], "the changes on the open screen")
      }
      try Self.devices(app, phone, try app.swiftClientAgain("giulia"))
      app.step("An owner shares a recipe with friends.") {
        let seen = try awaitResult {
          let shared = marco.collectionGroup("recipes").where("sharedWith", .arrayContains, "marco")
          var screen = shared.snapshots(as: Recipe.self).makeAsyncIterator()
          let before = try await screen.next()?.documents.count
          let cake = "users/giulia/recipes/ViCh4xo0rrPnLxeO4hW7"
          let refused = try await refusal { _ = try await marco.document(cake).get() }
          try await phone.document(cake).update(["sharedWith": .arrayUnion(["marco"])])
          let after = try await screen.next()?.documents.count
          return (before, refused, after, try await marco.document(cake).get(as: Recipe.self).data?.sharedWith)
        }
        app.check(seen.0, 2)
        app.check(seen.1, .permissionDenied)
        app.check(seen.2, 3)
        app.check(seen.3, ["marco"])
      }
    }
  }

  private static func devices(_ app: Scenario, _ phone: Hearth, _ tablet: Hearth) throws {
    app.step("Several devices stay in sync. Offline edits detect conflicting changes.") {
      let seen = try awaitResult {
        let (here, there) = (phone.collection("users/giulia/groceries"), tablet.collection("users/giulia/groceries"))
        let known = try await here.document("almonds").get(as: Grocery.self)
        var screen = there.snapshots(as: Grocery.self).makeAsyncIterator()
        _ = try await screen.next()
        try await there.document("almonds").update(["quantity": 2.5])
        let onTablet = try await screen.next()?.changes.map(\.document.data?.quantity)
        let stale = try await refusal {
          _ = try await here.document("almonds").update(["quantity": 4.0], if: known.updateTime.map { .updateTime($0) })
        }
        let fresh = try await here.document("almonds").get(as: Grocery.self)
        try await here.document("almonds").update(["quantity": 4.0], if: fresh.updateTime.map { .updateTime($0) })
        return (onTablet, stale, fresh.data?.quantity, try await screen.next()?.changes.map(\.document.data?.quantity))
      }
      app.check(seen.0, [2.5], "the tablet's screen")
      app.check(seen.1, .failedPrecondition)
      app.check(seen.2, 2.5, "the value of the other device")
      app.check(seen.3, [4.0], "the tablet's screen after the second edit")
    }
  }
}

/// The time that a text denotes.
private func date(_ text: String) -> Date {
  (try? Date(text, strategy: .iso8601)) ?? .distantPast
}

/// The code of the error that `body` throws, or `nil` if it succeeds.
private func refusal(_ body: () async throws -> Void) async throws -> HearthClientError.Code? {
  do {
    try await body()
    return nil
  } catch let error as HearthClientError {
    return error.code
  }
}

extension Value {
  fileprivate var whole: Int? {
    if case .integer(let number) = self { number } else { nil }
  }
}

extension Scenario {
  fileprivate var url: URL {
    var parts = URLComponents()
    (parts.scheme, parts.host, parts.port) = ("http", "127.0.0.1", Int(server.port))
    return parts.url ?? URL(fileURLWithPath: "/")
  }

  /// Creates an account with a chosen ID and signs in with its password.
  fileprivate func swiftClient(_ uid: String, claims: String? = nil) throws -> Hearth {
    _ = try person(uid, claims: claims)
    return try swiftClientAgain(uid)
  }

  /// Signs in on another device.
  fileprivate func swiftClientAgain(_ uid: String) throws -> Hearth {
    let client = Hearth(url: url, project: "demo")
    _ = try awaitResult {
      try await client.auth.signIn(email: "\(uid)@example.com", password: "password of \(uid)")
    }
    return client
  }
}
