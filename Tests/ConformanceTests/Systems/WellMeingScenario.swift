import Foundation
import Testing
import TestSupport

/// `well-meing`, wellness tracking with AI reports: the permissions of its users.
@Suite(.needs(.hearth))
struct WellMeingScenario {
  private static let omar = "users/user-id-200003"
  private static let cycling = "\(omar)/habits/Cycling (indoor and outdoor)"
  private static let history = "\(cycling)/history"

  @Test(.timeLimit(.minutes(10))) func scenarioWorksOverREST() async throws {
    try await Scenario.run("well-meing") { app in
      let omar = try app.person("user-id-200003")
      let lena = try app.person("user-id-200004")
      try Self.privacy(app, omar, lena)
      try Self.records(app, omar)
      try Self.charts(app, omar)
      try Self.reports(app, omar, lena)
      try Self.voice(app, omar)
      try Self.live(app, omar)
    }
  }

  @Test(.needs(.pythonClients), .timeLimit(.minutes(10))) func scenarioWorksWithPythonClients() async throws {
    try await Scenario.run("well-meing") { app in
      let omar = try app.person("user-id-200003")
      let lena = try app.person("user-id-200004")
      app.step("sign in") { app.check(omar.uid, "user-id-200003") }
      try app.runPython(["OMAR": omar.idToken, "LENA": lena.idToken])
    }
  }

  private static func privacy(_ app: Scenario, _ omar: Person, _ lena: Person) throws {
    app.step("A user reads and writes only their own subtree.") {
      let visitor = app.visitor()
      for path in [Self.omar, cycling, "\(history)/x"] {
        app.check(try omar.get(path).status, path.hasSuffix("/x") ? 404 : 200, path)
        app.deny(try lena.get(path), path)
        app.deny(try visitor.get(path), path)
      }
      app.allow(try omar.list(history))
      app.deny(try lena.list(history))
      app.deny(try lena.set("\(Self.omar)/habits/Mine", ["metrics": [:]]))
      app.deny(try lena.delete(cycling))
      app.deny(try visitor.create("\(Self.omar)/habits", ["metrics": [:]]))
      app.deny(try omar.list("users"), "all users")
      app.deny(try omar.find(AppQuery(group: "history")), "the history of all users")
      app.allow(try omar.update(Self.omar, ["bio": "Swims before work."]))
      app.check(try omar.get(Self.omar).fields["bio"]?.stringValue, "Swims before work.")
    }
    app.step("A user creates their own profile, with any first newReportDate, past or future.") {
      for (email, date) in [("early@example.com", fromNow(-86400)), ("late@example.com", fromNow(86400))] {
        let newcomer = try app.newcomer(email: email)
        let other = try app.newcomer()
        app.deny(try newcomer.set("users/\(other.uid)", ["name": "New", "newReportDate": date]))
        app.allow(try newcomer.set("users/\(newcomer.uid)", ["name": "New", "newReportDate": date]))
      }
    }
  }

  private static func records(_ app: Scenario, _ omar: Person) throws {
    let cases: [(metric: String, fits: [JSONNode], fails: [JSONNode])] = [
      ("Distance", [0.5, 250.0], [12, 250.5, -0.1, "12", .null]),
      ("Climb", [0, 4000], [12.5, 4001, -1, "100"]),
      ("Route", ["", "Sûre → Clervaux 🚲"], [1, .null, ["a"]]),
      ("Weather", ["", "sun", "sun;wind"], ["snow", "sun;snow", "sun;", 1]),
      ("Duration", ["00:00:00", "23:59:59"], ["24:00:00", "1:30:00", "01:60:00", "01:30", 90]),
      ("Feeling", [1, 5], [0, 6, 3.0, "3"]),
    ]
    app.step("A history record is accepted only when the value of each metric fits its input type.") {
      for (metric, fits, fails) in cases {
        for value in fits { app.allow(try record(omar, [.init(metric, value)]), "\(metric) \(value.text)") }
        for value in fails { app.deny(try record(omar, [.init(metric, value)]), "\(metric) \(value.text)") }
      }
      let everyMetric = cases.map { JSONNode.Member($0.metric, $0.fits[1]) }
      let made = try record(omar, everyMetric)
      app.allow(made, "a record with all five types")
      app.deny(try omar.update("\(history)/\(made.id)", ["metrics": ["Feeling": 9]]), "an invalid change")
    }
    app.step(
      "A record has at most ten metrics. The habit declares each of them, and a record may omit some."
    ) {
      app.deny(try record(omar, [.init("Mood", 3)]), "a metric that the habit lacks")
      app.allow(try record(omar, []), "a record without metrics")
      let names = (1...11).map { "m\($0)" }
      let metrics = JSONNode.object(names.map { .init($0, ["input": "rating"]) })
      app.allow(try omar.set("\(Self.omar)/habits/Wide", ["metrics": metrics]))
      for count in [10, 11] {
        let values = JSONNode.object(names.prefix(count).map { .init($0, 5) })
        let reply = try omar.create(
          "\(Self.omar)/habits/Wide/history", ["timestamp": at("2025-06-30T08:00:00Z"), "metrics": values])
        if count == 10 { app.allow(reply) } else { app.deny(reply) }
      }
    }
    app.step("Habit and metric names are free text with spaces and any Unicode.") {
      let habit = "\(Self.omar)/habits/Café ☕️: \"how many\"? 100%"
      let metric = "tasses / día `#1`"
      let config: JSONNode = ["type": "int", "min": 0, "max": 9]
      app.allow(
        try omar.set(habit, ["metrics": .object([.init(metric, ["input": "slider", "config": config])])]), "a habit")
      let made = try omar.create(
        habit + "/history", ["timestamp": at("2025-06-30T08:00:00Z"), "metrics": .object([.init(metric, 3)])])
      app.allow(made)
      app.check(try omar.get(habit + "/history/\(made.id)").fields["metrics"], json: .object([.init(metric, 3)]))
    }
  }

  /// Submits a record of these metrics, at a time that is outside every chart below.
  private static func record(_ person: Person, _ metrics: [JSONNode.Member]) throws -> Reply {
    try person.create(history, ["timestamp": at("2024-01-01T10:00:00Z"), "metrics": .object(metrics)])
  }

  private static func charts(_ app: Scenario, _ omar: Person) throws {
    // The expected numbers, computed from the fixture.
    let fixture = try app.fixture("users", "user-id-200003", "habits", "Cycling (indoor and outdoor)", "history")
    let records = fixture.members.map(\.value)
    func expected(_ period: String) -> [JSONNode] {
      records.filter { $0["timestamp"]?["$timestamp"]?.stringValue?.hasPrefix(period) == true }
    }
    func values(_ period: String, _ metric: String) -> [Double] {
      expected(period).compactMap { $0["metrics"]?[metric]?.number }
    }
    func query(_ from: String, _ to: String) -> AppQuery {
      AppQuery(history).where("timestamp", ">=", at(from)).where("timestamp", "<", at(to))
    }
    app.step("A user reads the history of a day, a month and a year: range queries on `timestamp`, newest first.") {
      let day = String((records.first?["timestamp"]?["$timestamp"]?.stringValue ?? "").prefix(10))
      let periods = [
        (day, day + "T00:00:00Z", day + "T23:59:59.999999Z"),
        ("2025-05", "2025-05-01T00:00:00Z", "2025-06-01T00:00:00Z"),
        ("2025", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
      ]
      for (period, from, to) in periods {
        let reply = try omar.find(query(from, to).order("timestamp", descending: true))
        let times = reply.documents.compactMap { $0["timestamp"]?["$timestamp"]?.stringValue }
        app.check(times.count, expected(period).count, "records of \(period)")
        app.check(!times.isEmpty && times == times.sorted(by: >), "\(period) is not newest first")
      }
    }
    app.step("Charts group by hour, day or month, with the aggregations count, sum and average.") {
      let buckets =
        (3...6).map { ("2025-0\($0)", "2025-0\($0)-01T00:00:00Z", "2025-0\($0 + 1)-01T00:00:00Z") }
        + (10...15).map { ("2025-05-\($0)", "2025-05-\($0)T00:00:00Z", "2025-05-\($0 + 1)T00:00:00Z") }
        + (7...18).map {
          let (hour, next) = (String(format: "%02d", $0), String(format: "%02d", $0 + 1))
          return ("2025-05-11T\(hour)", "2025-05-11T\(hour):00:00Z", "2025-05-11T\(next):00:00Z")
        }
      func rounded(_ number: Double) -> Double { (number * 1e9).rounded() / 1e9 }
      for (period, from, to) in buckets {
        // One request per aggregation: with a sum or an average, a request counts only records that have all its
        // metrics.
        let number = { try omar.aggregate(query(from, to), [("n", $0)]).aggregates["n"]?.number }
        let (climbs, feelings) = (values(period, "Climb"), values(period, "Feeling"))
        let average = feelings.isEmpty ? nil : feelings.reduce(0, +) / Double(feelings.count)
        app.check(try number(.count), Double(expected(period).count), "count of \(period)")
        app.check(try number(.sum("metrics.Climb")), climbs.reduce(0, +), "sum of \(period)")
        app.check(try number(.average("metrics.Feeling")).map(rounded), average.map(rounded), "average of \(period)")
      }
    }
    app.step("Charts add up durations, which are strings: the client sums the records of the period.") {
      func seconds(_ text: String) -> Int {
        text.split(separator: ":").compactMap { Int($0) }.reduce(0) { $0 * 60 + $1 }
      }
      let found = try omar.find(query("2025-05-01T00:00:00Z", "2025-06-01T00:00:00Z")).documents
      let sum = found.compactMap { $0["metrics"]?["Duration"]?.stringValue }.map(seconds).reduce(0, +)
      let stored = expected("2025-05").compactMap { $0["metrics"]?["Duration"]?.stringValue }.map(seconds).reduce(0, +)
      app.check(sum, stored)
      app.check(sum > 0, "the period has no durations")
    }
    app.step("Rules authorize aggregations like lists.") {
      let lena = try app.newcomer()
      app.deny(try lena.aggregate(AppQuery(history), [("records", .count)]))
    }
  }

  private static func reports(_ app: Scenario, _ omar: Person, _ lena: Person) throws {
    let mine = "users/\(lena.uid)"
    func reportWrites(_ person: String, _ date: JSONNode?, id: String = "2025-07-01T08:00:00") -> [AppWrite] {
      [.create("\(person)/reports/\(id)", ["title": "A week", "content": "..."])]
        + (date.map { [.update(person, ["newReportDate": $0])] } ?? [])
    }
    let week = 7 * 86400.0
    app.step("A user creates a report only when request.time is past newReportDate.") {
      app.deny(try omar.commit(reportWrites(Self.omar, fromNow(week))), "a report before the date")
      app.deny(try omar.update(Self.omar, ["newReportDate": fromNow(-60)]), "moving the date to the past")
    }
    app.step("The same commit must move newReportDate seven days ahead, within five minutes.") {
      app.deny(try lena.commit(reportWrites(mine, nil)), "a report that does not move the date")
      app.deny(try lena.commit(reportWrites(mine, fromNow(week - 400))), "less than a week")
      app.deny(try lena.commit(reportWrites(mine, fromNow(week + 400))), "more than a week")
      app.check(try lena.list(mine + "/reports").documents.count, 1, "reports")
      app.allow(try lena.commit(reportWrites(mine, fromNow(week + 240))), "by a clock four minutes fast")
      app.check(try lena.list(mine + "/reports").documents.map(\.id), ["2025-03-25T06:59:59", "2025-07-01T08:00:00"])
      app.deny(try lena.commit(reportWrites(mine, fromNow(week), id: "2025-07-01T08:00:01")), "a second report")
    }
  }

  private static func voice(_ app: Scenario, _ omar: Person) throws {
    func writes(of command: JSONNode) -> [AppWrite] {
      let habits = (command["creation"]?.members ?? []).map {
        AppWrite.create("\(Self.omar)/habits/\($0.name)", $0.value)
      }
      let records = (command["logging"]?.members ?? []).flatMap { habit in
        habit.value.elements.enumerated().map {
          AppWrite.create("\(Self.omar)/habits/\(habit.name)/history/voice-\($0.offset)", $0.element)
        }
      }
      return habits + records
    }
    func command(_ rating: JSONNode) -> JSONNode {
      [
        "creation": [
          "Stretching": ["goal": "daily", "metrics": ["Ease": ["input": "rating"], "Notes": ["input": "text"]]]
        ],
        "logging": [
          "Stretching": [
            ["timestamp": at("2025-07-02T06:00:00Z"), "metrics": ["Ease": 4]],
            ["timestamp": at("2025-07-02T21:00:00Z"), "metrics": ["Ease": rating, "Notes": "tired"]],
          ],
          "Weight": [["timestamp": at("2025-07-02T06:05:00Z"), "metrics": ["kg": 71.5]]],
        ],
      ]
    }
    app.step("A voice command with one invalid record applies not at all.") {
      app.deny(try omar.commit(writes(of: command(6))), "a command with one invalid record of three")
      for path in ["Stretching", "Stretching/history/voice-0", "Weight/history/voice-0"] {
        app.check(try omar.get("\(Self.omar)/habits/\(path)").status, 404, path)
      }
    }
    app.step("A voice command creates and logs habits in one atomic commit of many writes.") {
      let reply = try omar.commit(writes(of: command(2)))
      app.allow(reply)
      app.check(reply.json["writeResults"]?.elements.count, 4, "writes")
      let times = try ["Stretching", "Stretching/history/voice-1", "Weight/history/voice-0"].map {
        try omar.get("\(Self.omar)/habits/\($0)").updateTime
      }
      app.check(Set(times).count, 1, "the number of commit times")
      app.check(try omar.commit(writes(of: command(2))).status, 409, "the status of a repeated command")
    }
  }

  private static func live(_ app: Scenario, _ omar: Person) throws {
    let month = AppQuery(history).where("timestamp", ">=", at("2025-07-01T00:00:00Z")).order(
      "timestamp", descending: true)
    let again: JSONNode = ["timestamp": at("2025-07-03T18:00:00Z"), "metrics": ["Distance": 31.5, "Feeling": 4]]
    app.step("A user deletes a submission, and resubmission gets a new id. Open screens follow live.") {
      let (calendar, list) = (try omar.follow(month), try omar.follow(history))
      try calendar.wait()
      try list.wait()
      app.check(calendar.documents.isEmpty, "the calendar shows records of July")
      app.check(
        list.documents.count, try omar.aggregate(AppQuery(history), [("n", .count)]).aggregates["n"]?.integerValue)
      let first = try omar.create(history, again)
      try calendar.wait { $0.documents.keys.contains("\(history)/\(first.id)") }
      try list.wait { $0.documents.keys.contains("\(history)/\(first.id)") }
      app.allow(try omar.delete("\(history)/\(first.id)"))
      try calendar.wait { $0.documents.isEmpty }
      let second = try omar.create(history, again)
      app.check(first.id != second.id, "the new record has the old id")
      try calendar.wait { $0.documents.count == 1 }
      try list.wait { $0.documents.keys.contains("\(history)/\(second.id)") }
      app.check(calendar.documents["\(history)/\(second.id)"], json: again)
      app.check(try omar.get("\(history)/\(first.id)").status, 404)
    }
    app.step("A screen that reconnects receives only the changes.") {
      let screen = try omar.follow(history)
      try screen.wait()
      screen.disconnect()
      let added = try omar.create(history, ["timestamp": at("2025-07-04T18:00:00Z"), "metrics": ["Feeling": 5]])
      let back = try omar.follow(history, resumingAt: screen.resumeToken)
      try back.wait { !$0.reported.isEmpty }
      app.check(back.reported, ["\(history)/\(added.id)"])
    }
    app.step("Other users cannot open the screen.") {
      let stranger = try app.newcomer()
      app.check(try stranger.follow(history).status, 403)
      app.check(try app.visitor().follow(month).status, 403)
    }
  }
}
