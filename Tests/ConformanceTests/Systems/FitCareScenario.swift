import Foundation
import TestSupport
import Testing

/// `fit-care`, a health record: what a patient keeps, whom they share it with, and until when.
@Suite(.enabled(if: HearthBinary.isBuilt, "no hearth binary beside the tests"))
struct FitCareScenario {
  private static let adele = "patients/pat-adele"
  private static let far = at("2099-12-31T00:00:00Z")
  private static let past = at("2001-01-01T00:00:00Z")

  @Test(.timeLimit(.minutes(10))) func plainClient() async throws {
    try await Scenario.run("fit-care") { app in
      let patient = try app.person("pat-adele")
      let doctor = try app.person("doc-ferri")
      let formerDoctor = try app.person("doc-muller")
      let nutritionist = try app.person("nutri-bea")
      let stranger = try app.newcomer()
      Self.record(app, patient)
      Self.numbers(app, patient)
      Self.shares(app, patient, doctor, formerDoctor, stranger)
      Self.nutrition(app, patient, nutritionist)
      Self.grants(app, patient, doctor, stranger)
      try Self.live(app, patient, stranger)
      Self.files(app, patient, doctor, [formerDoctor, nutritionist, stranger])
    }
  }

  @Test(.needsPythonClients, .timeLimit(.minutes(10))) func pythonClient() async throws {
    try await Scenario.run("fit-care") { try $0.runPython() }
  }

  private static func record(_ app: Scenario, _ patient: Person) {
    app.step("a patient reads and writes their own record, whether or not there is a profile") {
      let counts = try ["measurements", "appointments", "documents", "medications", "meals"].map {
        try patient.aggregate(AppQuery("\(adele)/\($0)"), [("n", .count)]).aggregates["n"]?.integerValue
      }
      app.check(counts, [420, 17, 6, 2, 60])
      app.allow(try patient.update(adele, ["weight": 61.0]), "the profile")
      app.allow(try patient.create("\(adele)/medications", ["name": "Ibuprofen", "dose": "400 mg"]), "a medication")
      let newcomer = try app.newcomer()
      app.check(try newcomer.get("patients/\(newcomer.uid)").status, 404, "a profile of one's own that is not there")
      app.allow(try newcomer.create("patients/\(newcomer.uid)/meals", ["food": "Soup", "energy": 210]), "a first meal")
    }
    app.step("emergency contacts are readable at once: one get, and a kept copy is good until it changes") {
      let profile = try patient.get(adele)
      let contact = profile.fields["emergencyContacts"]?.elements.first
      app.check(contact?["phone"], json: "+39 02 555 1317")
      app.check(profile.fields["bloodGroup"], json: "A+")
      app.check(try patient.get(adele, ifNoneMatch: profile.etag).status, 304, "unchanged")
    }
    app.step("appointments of a day") {
      let all = try patient.find(AppQuery("\(adele)/appointments").order("start")).documents
      let day = all.first?["start"]?["$timestamp"]?.stringValue?.prefix(10) ?? "none"
      let today = AppQuery("\(adele)/appointments").where("start", ">=", at("\(day)T00:00:00Z"))
        .where("start", "<=", at("\(day)T23:59:59.999Z")).order("start")
      let expected = all.filter { $0["start"]?["$timestamp"]?.stringValue?.hasPrefix(day) == true }
      app.check(try patient.find(today).documents.map(\.id), expected.map(\.id))
      app.check(expected.first?["hospital"]?.stringValue?.isEmpty, false, "a hospital")
    }
  }

  /// Averages are compared with what the documents themselves give.
  private static func numbers(_ app: Scenario, _ patient: Person) {
    app.step("charts with weekly, monthly and yearly averages per kind of measurement") {
      let all = try patient.find(AppQuery("\(adele)/measurements").order("at", descending: true)).documents
      let kinds = Set(all.compactMap { $0["kind"]?.stringValue })
      app.check(kinds.count >= 5, "too few kinds: \(kinds)")
      let newest = all.first?["at"]?["$timestamp"]?.stringValue ?? ""
      let end = try Date(newest, strategy: .iso8601)
      for kind in kinds.sorted() {
        for days in [7, 30, 365] {
          let start = end.addingTimeInterval(-86_400 * Double(days)).formatted(.iso8601)
          let window = AppQuery("\(adele)/measurements").where("kind", "==", .string(kind))
            .where("at", ">", at(start)).where("at", "<=", at(newest))
          let answer = try patient.aggregate(window, [("mean", .average("value")), ("count", .count)]).aggregates
          let values = all.filter { measurement in
            let time = measurement["at"]?["$timestamp"]?.stringValue ?? ""
            return measurement["kind"]?.stringValue == kind && time > start && time <= newest
          }.compactMap { $0["value"]?.number }
          let mean = values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
          let isMean = mean.map { abs((answer["mean"]?.number ?? .infinity) - $0) < 1e-9 } ?? (answer["mean"]?.number == nil)
          app.check(isMean, "\(kind), \(days) days: \(answer.text), not \(mean ?? .nan)")
          app.check(answer["count"]?.integerValue, values.count, "\(kind), \(days) days")
        }
      }
    }
  }

  /// Expects that somebody is denied what is there and what is not, in the same words.
  private static func hides(_ app: Scenario, _ place: String, _ id: String, from person: Person, _ who: String) throws {
    let (there, missing) = (try person.get("\(place)/\(id)"), try person.get("\(place)/not-there"))
    app.deny(there, "\(who): \(place)")
    app.check(there.json, json: missing.json, "\(who): what is there and what is not")
    app.deny(try person.list(place), "\(who) listing \(place)")
    app.deny(try person.find(AppQuery(place).limit(1)), "\(who) asking for \(place)")
    app.deny(try person.aggregate(AppQuery(place), [("n", .count)]), "\(who) counting \(place)")
    app.check(try person.follow(place).status, 403, "\(who) following \(place)")
    app.deny(try person.delete("\(place)/\(id)"), "\(who) deleting in \(place)")
    app.deny(try person.update("\(place)/\(id)", ["name": "…"]), "\(who) changing \(place)")
    app.deny(try person.update("\(place)/not-there", ["name": "…"]), "\(who) changing what is not in \(place)")
  }

  private static func shares(
    _ app: Scenario, _ patient: Person, _ doctor: Person, _ formerDoctor: Person, _ stranger: Person
  ) {
    app.step("a doctor reads a patient's data only while a share exists, holds and names that scope") {
      for scope in ["measurements", "appointments", "documents", "medications"] {
        app.check(try doctor.find(AppQuery("\(adele)/\(scope)").limit(2)).documents.count, 2, scope)
      }
      let one = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      app.allow(try doctor.get("\(adele)/measurements/\(one)"), "one measurement")
      app.check(try doctor.get("\(adele)/measurements/not-there").status, 404, "a holder may know what is not there")
      app.deny(try doctor.set("\(adele)/measurements/new", ["kind": "weight"]), "a doctor writing")
      app.deny(try doctor.find(AppQuery(group: "measurements")), "the measurements of all patients")
      app.deny(try doctor.list("patients"), "all patients")
    }
    app.step("a scope that is not named, a share that is over, and nobody's share: denied, and nothing leaks") {
      let measurement = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      let meal = try patient.find(AppQuery("\(adele)/meals").limit(1)).documents.first?.id ?? ""
      try hides(app, "\(adele)/meals", meal, from: doctor, "a doctor without that scope")
      try hides(app, "\(adele)/measurements", measurement, from: formerDoctor, "a doctor whose share is over")
      try hides(app, "\(adele)/measurements", measurement, from: stranger, "a stranger")
      try hides(app, "\(adele)/measurements", measurement, from: app.visitor(), "nobody")
      try hides(app, "patients", "pat-adele", from: doctor, "a doctor and the profile")
      try hides(app, "shares", "doc-ferri_pat-adele", from: stranger, "a stranger and the shares")
    }
    app.step("neither user needs a document of their own for a share to hold") {
      let okafor = try app.person("doc-okafor")
      app.check(try okafor.find(AppQuery("patients/pat-erik/measurements")).documents.map(\.id), ["only-one"])
      app.check(try okafor.list("patients/pat-nobody/measurements").status, 200, "a patient of whom there is nothing")
    }
    app.step("both sides of a share find theirs, and nobody those of others") {
      let given = AppQuery("shares").where("patient", "==", "pat-adele")
      app.check(try patient.find(given).documents.count, 4, "given")
      app.check(try doctor.find(AppQuery("shares").where("reader", "==", "doc-ferri")).documents.count, 3, "held")
      app.deny(try doctor.find(given), "shares that a patient gave to others")
    }
  }

  private static func nutrition(_ app: Scenario, _ patient: Person, _ nutritionist: Person) {
    app.step("a nutritionist holds a share whose scope is meals") {
      let meals = try nutritionist.find(AppQuery("\(adele)/meals")).documents
      app.check(meals.count, 60)
      let answer = try nutritionist.aggregate(
        AppQuery("\(adele)/meals"), [("energy", .sum("energy")), ("protein", .average("protein"))]
      ).aggregates
      app.check(answer["energy"]?.number, meals.reduce(0) { $0 + ($1["energy"]?.number ?? 0) }, "energy")
      let protein = meals.reduce(0) { $0 + ($1["protein"]?.number ?? 0) } / 60
      app.check(abs((answer["protein"]?.number ?? 0) - protein) < 1e-9, "protein is \(answer.text), not \(protein)")
      let measurement = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      try hides(app, "\(adele)/measurements", measurement, from: nutritionist, "a nutritionist")
    }
  }

  private static func grants(_ app: Scenario, _ patient: Person, _ doctor: Person, _ stranger: Person) {
    app.step("only the patient writes a share") {
      let share = "shares/\(stranger.uid)_pat-adele"
      let grant: JSONNode = [
        "reader": .string(stranger.uid), "patient": "pat-adele", "scopes": ["appointments"], "expires": far,
      ]
      app.deny(try stranger.set(share, grant), "granting it to oneself")
      app.deny(try doctor.set(share, grant), "granting what one was shown")
      app.deny(try doctor.update("shares/doc-ferri_pat-adele", ["scopes": ["meals"]]), "widening one's own share")
      app.deny(try doctor.delete("shares/doc-ferri_pat-adele"), "deleting one's own share")
      app.deny(try patient.set("shares/\(stranger.uid)_pat-bjorn", grant), "granting under another patient's name")
      app.allow(try patient.set(share, grant), "granting")
      app.allow(try stranger.list("\(adele)/appointments"), "what it names")
      app.deny(try stranger.list("\(adele)/meals"), "what it does not name yet")
      app.allow(try patient.update(share, ["scopes": ["appointments", "meals"]]), "naming one more")
      app.allow(try stranger.list("\(adele)/meals"), "what it names now")
      app.allow(try patient.update(share, ["expires": past]), "ending it with a time that is past")
      app.deny(try stranger.list("\(adele)/meals"), "after its end")
      app.allow(try patient.update(share, ["expires": far]), "giving it again")
      app.allow(try patient.delete(share), "taking it away")
      app.deny(try stranger.list("\(adele)/meals"), "without it")
    }
  }

  private static func live(_ app: Scenario, _ patient: Person, _ stranger: Person) throws {
    let share = "shares/\(stranger.uid)_pat-adele"
    func grant(until expires: JSONNode) throws -> Reply {
      try patient.set(
        share, ["reader": .string(stranger.uid), "patient": "pat-adele", "scopes": ["meals"], "expires": expires])
    }
    var token: String?
    app.step("a reader's open screen follows, and is cut when the share is ended, before anything else is told") {
      app.allow(try grant(until: far))
      let screen = try stranger.follow("\(adele)/meals")
      try screen.wait { $0.documents.count == 60 }
      app.allow(try patient.set("\(adele)/meals/soup", ["food": "Soup", "energy": 210]))
      try screen.wait { $0.documents["\(adele)/meals/soup"] != nil }
      token = screen.resumeToken
      app.allow(try patient.update(share, ["expires": past]))
      app.allow(try patient.set("\(adele)/meals/cake", ["food": "Cake", "energy": 540]))
      try screen.waitForEnd()
      app.check(screen.endedWithCode, 7, "the feed")
      app.check(!screen.told.contains("\(adele)/meals/cake"), "a meal was told after the end")
    }
    app.step("a share that is given again goes on from where the screen was") {
      app.check(try stranger.follow("\(adele)/meals", resumingAt: token).status, 403, "while it is over")
      app.allow(try grant(until: far))
      let screen = try stranger.follow("\(adele)/meals", resumingAt: token)
      try screen.wait { $0.told.contains("\(adele)/meals/cake") }
      app.check(screen.told, ["\(adele)/meals/cake"], "only what changed")
    }
    app.step("a reader's open screen is told nothing behind the time at which the share expires") {
      var (end, screen) = (Date(), LiveScreen?.none)
      // On a busy machine opening a screen takes longer than a short share holds.
      for seconds in [0.7, 3, 12] where screen == nil {
        // The server is told whole milliseconds.
        end = Date(timeIntervalSince1970: ((Date().timeIntervalSince1970 + seconds) * 1000).rounded() / 1000)
        app.allow(try grant(until: at(end.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))))
        let opened = try stranger.follow("\(adele)/meals")
        do {
          try opened.wait { $0.documents.count == 62 }
          screen = opened
        } catch where Date() >= end {}
      }
      guard let screen else { return app.check(false, "no screen was opened while a share held") }
      while try stranger.list("\(adele)/meals").status == 200, Date() < end + 5 { usleep(20_000) }
      app.check(Date() >= end, "the share ended early")
      app.allow(try patient.set("\(adele)/meals/secret", ["food": "Chocolate"]))
      try screen.waitForEnd()
      app.check(screen.endedWithCode, 7, "the feed")
      app.check(!screen.told.contains("\(adele)/meals/secret"), "a meal was told after the end")
    }
  }

  private static func files(_ app: Scenario, _ patient: Person, _ doctor: Person, _ others: [Person]) {
    let (mine, theirs) = (StoredFiles(of: patient), StoredFiles(of: doctor))
    var random = SplitMix(seed: 5)
    let report = Array("%PDF-1.7\n".utf8) + (0..<50_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let path = "\(adele)/documents/bloods-2025.pdf"
    app.step("PDFs are uploaded, and their metadata tells name, type, size, digest and path") {
      let stored = try mine.upload(path, report, type: "application/pdf")
      app.check(stored.status, 200, "the upload")
      let attributes = try JSONNode(parsing: stored.body)
      let metadata: JSONNode = [
        "name": "bloods 2025.pdf", "type": attributes["contentType"] ?? .null, "size": .number("\(report.count)"),
        "sha256": .string(try SHA256Sum.of(report)), "path": .string(path),
      ]
      app.check(attributes["size"], json: .string("\(report.count)"))
      app.allow(try patient.set("\(adele)/documents/bloods-2025", metadata))
    }
    app.step("a share whose scope is documents reads both; what arrives has the digest that the metadata tells") {
      let found = try doctor.get("\(adele)/documents/bloods-2025").fields
      let content = try theirs.download(found["path"]?.stringValue ?? "")
      app.check(content.header("content-type"), "application/pdf")
      app.check(found["sha256"]?.stringValue, try SHA256Sum.of(content.body))
      app.check(try theirs.download(path, headers: [("Range", "bytes=0-7")]).body, Array("%PDF-1.7".utf8))
    }
    app.step("nobody else downloads, and nothing tells them whether there is a file") {
      for person in others + [app.visitor()] {
        let files = StoredFiles(of: person)
        for ask in [{ try files.download($0) }, files.attributes, files.delete] as [(String) throws -> HTTPResponse] {
          let (there, missing) = (try ask(path), try ask("\(adele)/documents/not-there.pdf"))
          app.check(there.status, 403, person.uid)
          app.check(there.text, missing.text, "\(person.uid): what is there and what is not")
        }
        app.check(try files.list("\(adele)/documents/").status, 403, "\(person.uid) listing")
        app.check(try files.upload(path, report, type: "application/pdf").status, 403, "\(person.uid) uploading")
      }
      app.check(try theirs.upload(path, report, type: "application/pdf").status, 403, "a doctor uploading")
      app.check(try theirs.delete(path).status, 403, "a doctor deleting")
    }
    app.step("only PDFs, of at most 25 MiB, below one's own documents") {
      app.check(try mine.upload(path, report, type: "text/html").status, 403, "a page")
      app.check(try mine.upload("\(adele)/x.pdf", report, type: "application/pdf").status, 403, "elsewhere")
      app.check(
        try mine.upload("patients/pat-bjorn/documents/x.pdf", report, type: "application/pdf").status, 403, "another's")
      let large = [UInt8](repeating: 0x20, count: 25 << 20 | 1)
      app.check(try mine.upload(path, large, type: "application/pdf").status, 403, "too much, over one that is there")
      app.check(try mine.download(path).body == report, "a refused upload changed the file")
    }
    app.step("a PDF stays readable offline: a kept copy is asked for by its ETag, and comes again when it changed") {
      let first = try mine.download(path)
      let known = [("If-None-Match", first.header("etag") ?? "")]
      let again = try mine.download(path, headers: known)
      app.check(again.status, 304)
      app.check(again.body.isEmpty, "an answer without news has a body")
      let corrected = report + Array("%%EOF\n".utf8)
      app.check(try mine.upload(path, corrected, type: "application/pdf").status, 200, "a corrected file")
      app.check(try mine.download(path, headers: known).body == corrected, "the corrected file does not come")
    }
    app.step("a file is closed with the share, and gone when its patient deletes it") {
      app.allow(try patient.update("shares/doc-ferri_pat-adele", ["scopes": ["measurements"]]))
      app.check(try theirs.download(path).status, 403, "without the scope")
      app.allow(try patient.update("shares/doc-ferri_pat-adele", ["scopes": ["documents"], "expires": past]))
      app.check(try theirs.download(path).status, 403, "after the end")
      app.check(try mine.delete(path).status, 204)
      app.check(try mine.download(path).status, 404)
    }
  }
}
