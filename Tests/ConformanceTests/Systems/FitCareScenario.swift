import Foundation
import Testing
import TestSupport

/// `fit-care`, a health record: the data of a patient, the readers they share it with, and until when.
@Suite(.needs(.hearth))
struct FitCareScenario {
  private static let adele = "patients/pat-adele"
  private static let far = at("2099-12-31T00:00:00Z")
  private static let past = at("2001-01-01T00:00:00Z")

  @Test(.timeLimit(.minutes(10))) func scenarioWorksOverREST() async throws {
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

  @Test(.needs(.pythonClients), .timeLimit(.minutes(10))) func scenarioWorksWithPythonClients() async throws {
    try await Scenario.run("fit-care") { try $0.runPython() }
  }

  private static func record(_ app: Scenario, _ patient: Person) {
    app.step("A patient reads and writes their own record, even without a profile.") {
      let counts = try ["measurements", "appointments", "documents", "medications", "meals"].map {
        try patient.aggregate(AppQuery("\(adele)/\($0)"), [("n", .count)]).aggregates["n"]?.integerValue
      }
      app.check(counts, [420, 17, 6, 2, 60])
      app.allow(try patient.update(adele, ["weight": 61.0]), "the profile")
      app.allow(try patient.create("\(adele)/medications", ["name": "Ibuprofen", "dose": "400 mg"]), "a medication")
      let newcomer = try app.newcomer()
      app.check(try newcomer.get("patients/\(newcomer.uid)").status, 404, "the patient's own missing profile")
      app.allow(try newcomer.create("patients/\(newcomer.uid)/meals", ["food": "Soup", "energy": 210]), "a first meal")
    }
    app.step("One get reads emergency contacts, and a cached copy is valid until they change.") {
      let profile = try patient.get(adele)
      let contact = profile.fields["emergencyContacts"]?.elements.first
      app.check(contact?["phone"], json: "+39 02 555 1317")
      app.check(profile.fields["bloodGroup"], json: "A+")
      app.check(try patient.get(adele, ifNoneMatch: profile.etag).status, 304, "the status of an unchanged profile")
    }
    app.step("A patient lists the appointments of a day.") {
      let all = try patient.find(AppQuery("\(adele)/appointments").order("start")).documents
      let day = all.first?["start"]?["$timestamp"]?.stringValue?.prefix(10) ?? "none"
      let today = AppQuery("\(adele)/appointments").where("start", ">=", at("\(day)T00:00:00Z"))
        .where("start", "<=", at("\(day)T23:59:59.999Z")).order("start")
      let expected = all.filter { $0["start"]?["$timestamp"]?.stringValue?.hasPrefix(day) == true }
      app.check(try patient.find(today).documents.map(\.id), expected.map(\.id))
      app.check(expected.first?["hospital"]?.stringValue?.isEmpty, false, "whether the hospital is empty")
    }
  }

  /// Compares averages with those computed from the documents.
  private static func numbers(_ app: Scenario, _ patient: Person) {
    app.step("Charts show weekly, monthly and yearly averages per kind of measurement.") {
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
          let isMean =
            mean.map { abs((answer["mean"]?.number ?? .infinity) - $0) < 1e-9 } ?? (answer["mean"]?.number == nil)
          app.check(isMean, "\(kind), \(days) days: \(answer.text), not \(mean ?? .nan)")
          app.check(answer["count"]?.integerValue, values.count, "\(kind), \(days) days")
        }
      }
    }
  }

  /// Expects that a person is denied existing and missing documents with the same error.
  private static func expectHidden(
    _ app: Scenario, _ place: String, _ id: String, from person: Person, _ who: String
  ) throws {
    let (there, missing) = (try person.get("\(place)/\(id)"), try person.get("\(place)/not-there"))
    app.deny(there, "\(who): \(place)")
    app.check(there.json, json: missing.json, "\(who): the error for an existing document")
    app.deny(try person.list(place), "\(who) listing \(place)")
    app.deny(try person.find(AppQuery(place).limit(1)), "\(who) querying \(place)")
    app.deny(try person.aggregate(AppQuery(place), [("n", .count)]), "\(who) counting \(place)")
    app.check(try person.follow(place).status, 403, "\(who) following \(place)")
    app.deny(try person.delete("\(place)/\(id)"), "\(who) deleting in \(place)")
    app.deny(try person.update("\(place)/\(id)", ["name": "…"]), "\(who) changing \(place)")
    app.deny(try person.update("\(place)/not-there", ["name": "…"]), "\(who) changing a missing document in \(place)")
  }

  private static func shares(
    _ app: Scenario, _ patient: Person, _ doctor: Person, _ formerDoctor: Person, _ stranger: Person
  ) {
    app.step("A doctor reads a patient's data only while a valid share names that scope.") {
      for scope in ["measurements", "appointments", "documents", "medications"] {
        app.check(try doctor.find(AppQuery("\(adele)/\(scope)").limit(2)).documents.count, 2, scope)
      }
      let one = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      app.allow(try doctor.get("\(adele)/measurements/\(one)"), "one measurement")
      app.check(try doctor.get("\(adele)/measurements/not-there").status, 404, "a missing document in the scope")
      app.deny(try doctor.set("\(adele)/measurements/new", ["kind": "weight"]), "a doctor writing")
      app.deny(try doctor.find(AppQuery(group: "measurements")), "the measurements of all patients")
      app.deny(try doctor.list("patients"), "all patients")
    }
    app.step("Without a valid share of the scope, reads are denied and reveal nothing.") {
      let measurement = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      let meal = try patient.find(AppQuery("\(adele)/meals").limit(1)).documents.first?.id ?? ""
      try expectHidden(app, "\(adele)/meals", meal, from: doctor, "a doctor without that scope")
      try expectHidden(app, "\(adele)/measurements", measurement, from: formerDoctor, "a doctor with an expired share")
      try expectHidden(app, "\(adele)/measurements", measurement, from: stranger, "a stranger")
      try expectHidden(app, "\(adele)/measurements", measurement, from: app.visitor(), "an unauthenticated caller")
      try expectHidden(app, "patients", "pat-adele", from: doctor, "a doctor reading the profile")
      try expectHidden(app, "shares", "doc-ferri_pat-adele", from: stranger, "a stranger reading the shares")
    }
    app.step("A share is valid even if neither user has a document.") {
      let okafor = try app.person("doc-okafor")
      app.check(try okafor.find(AppQuery("patients/pat-erik/measurements")).documents.map(\.id), ["only-one"])
      app.check(try okafor.list("patients/pat-nobody/measurements").status, 200, "a patient without documents")
    }
    app.step("Both sides of a share find their shares, and no other user finds them.") {
      let given = AppQuery("shares").where("patient", "==", "pat-adele")
      app.check(try patient.find(given).documents.count, 4, "given")
      app.check(try doctor.find(AppQuery("shares").where("reader", "==", "doc-ferri")).documents.count, 3, "held")
      app.deny(try doctor.find(given), "shares that a patient gave to others")
    }
  }

  private static func nutrition(_ app: Scenario, _ patient: Person, _ nutritionist: Person) {
    app.step("A nutritionist has a share for meals.") {
      let meals = try nutritionist.find(AppQuery("\(adele)/meals")).documents
      app.check(meals.count, 60)
      let answer = try nutritionist.aggregate(
        AppQuery("\(adele)/meals"), [("energy", .sum("energy")), ("protein", .average("protein"))]
      ).aggregates
      app.check(answer["energy"]?.number, meals.reduce(0) { $0 + ($1["energy"]?.number ?? 0) }, "energy")
      let protein = meals.reduce(0) { $0 + ($1["protein"]?.number ?? 0) } / 60
      app.check(abs((answer["protein"]?.number ?? 0) - protein) < 1e-9, "protein is \(answer.text), not \(protein)")
      let measurement = try patient.find(AppQuery("\(adele)/measurements").limit(1)).documents.first?.id ?? ""
      try expectHidden(app, "\(adele)/measurements", measurement, from: nutritionist, "a nutritionist")
    }
  }

  private static func grants(_ app: Scenario, _ patient: Person, _ doctor: Person, _ stranger: Person) {
    app.step("Only the patient writes a share.") {
      let share = "shares/\(stranger.uid)_pat-adele"
      let grant: JSONNode = [
        "reader": .string(stranger.uid), "patient": "pat-adele", "scopes": ["appointments"], "expires": far,
      ]
      app.deny(try stranger.set(share, grant), "a stranger granting a share to themselves")
      app.deny(try doctor.set(share, grant), "a doctor passing a share on")
      app.deny(try doctor.update("shares/doc-ferri_pat-adele", ["scopes": ["meals"]]), "a reader widening their share")
      app.deny(try doctor.delete("shares/doc-ferri_pat-adele"), "a reader deleting their share")
      app.deny(try patient.set("shares/\(stranger.uid)_pat-bjorn", grant), "granting in another patient's name")
      app.allow(try patient.set(share, grant), "granting a share")
      app.allow(try stranger.list("\(adele)/appointments"), "a scope that the share names")
      app.deny(try stranger.list("\(adele)/meals"), "a scope that the share does not name yet")
      app.allow(try patient.update(share, ["scopes": ["appointments", "meals"]]), "adding a scope")
      app.allow(try stranger.list("\(adele)/meals"), "the added scope")
      app.allow(try patient.update(share, ["expires": past]), "setting an expiry in the past")
      app.deny(try stranger.list("\(adele)/meals"), "an expired share")
      app.allow(try patient.update(share, ["expires": far]), "renewing the share")
      app.allow(try patient.delete(share), "deleting the share")
      app.deny(try stranger.list("\(adele)/meals"), "a deleted share")
    }
  }

  private static func live(_ app: Scenario, _ patient: Person, _ stranger: Person) throws {
    let share = "shares/\(stranger.uid)_pat-adele"
    func grant(until expires: JSONNode) throws -> Reply {
      try patient.set(
        share, ["reader": .string(stranger.uid), "patient": "pat-adele", "scopes": ["meals"], "expires": expires])
    }
    var token: String?
    app.step("A reader's open screen follows changes, and ends with the share, before any further change.") {
      app.allow(try grant(until: far))
      let screen = try stranger.follow("\(adele)/meals")
      try screen.wait { $0.documents.count == 60 }
      app.allow(try patient.set("\(adele)/meals/soup", ["food": "Soup", "energy": 210]))
      try screen.wait { $0.documents["\(adele)/meals/soup"] != nil }
      token = screen.resumeToken
      app.allow(try patient.update(share, ["expires": past]))
      app.allow(try patient.set("\(adele)/meals/cake", ["food": "Cake", "energy": 540]))
      try screen.waitForEnd()
      app.check(screen.endedWithCode, 7, "the code that ended the feed")
      app.check(!screen.reported.contains("\(adele)/meals/cake"), "the screen showed a meal after the end")
    }
    app.step("After a share is renewed, the screen resumes where it stopped.") {
      app.check(try stranger.follow("\(adele)/meals", resumingAt: token).status, 403, "a feed without a share")
      app.allow(try grant(until: far))
      let screen = try stranger.follow("\(adele)/meals", resumingAt: token)
      try screen.wait { $0.reported.contains("\(adele)/meals/cake") }
      app.check(screen.reported, ["\(adele)/meals/cake"], "the changes on the resumed screen")
    }
    app.step("A reader's open screen shows no change after the share expires.") {
      var (end, screen) = (Date(), LiveScreen?.none)
      // On a busy machine, opening a screen can take longer than a short share is valid.
      for seconds in [0.7, 3, 12] where screen == nil {
        // The server receives whole milliseconds. The format rounds down, and many dates lie just below a millisecond.
        end = Date(timeIntervalSince1970: ((Date().timeIntervalSince1970 + seconds) * 1000).rounded() / 1000)
        let text = (end + 0.0005).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        app.allow(try grant(until: at(text)))
        let opened = try stranger.follow("\(adele)/meals")
        do {
          try opened.wait { $0.documents.count == 62 }
          screen = opened
        } catch  where Date() >= end {}
      }
      guard let screen else { return app.check(false, "no screen opened while a share was valid") }
      app.check(
        try OtherProcess.eventually { try stranger.list("\(adele)/meals").status == 403 }, "the share did not end")
      app.check(Date() >= end, "the share ended early")
      app.allow(try patient.set("\(adele)/meals/secret", ["food": "Chocolate"]))
      try screen.waitForEnd()
      app.check(screen.endedWithCode, 7, "the code that ended the feed")
      app.check(!screen.reported.contains("\(adele)/meals/secret"), "the screen showed a meal after the end")
    }
  }

  private static func files(_ app: Scenario, _ patient: Person, _ doctor: Person, _ others: [Person]) {
    let (mine, theirs) = (StoredFiles(of: patient), StoredFiles(of: doctor))
    var random = SplitMix(seed: 5)
    let report = Array("%PDF-1.7\n".utf8) + (0..<50_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let path = "\(adele)/documents/bloods-2025.pdf"
    app.step("A patient uploads PDFs. Their metadata has name, type, size, digest and path.") {
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
    app.step("A share for documents allows reading both, and the PDF has the digest of its metadata.") {
      let found = try doctor.get("\(adele)/documents/bloods-2025").fields
      let content = try theirs.download(found["path"]?.stringValue ?? "")
      app.check(content.header("content-type"), "application/pdf")
      app.check(found["sha256"]?.stringValue, try SHA256Sum.of(content.body))
      app.check(try theirs.download(path, headers: [("Range", "bytes=0-7")]).body, Array("%PDF-1.7".utf8))
    }
    app.step("No other caller downloads a file, or learns whether it exists.") {
      for person in others + [app.visitor()] {
        let files = StoredFiles(of: person)
        for ask in [{ try files.download($0) }, files.attributes, files.delete] as [(String) throws -> HTTPResponse] {
          let (there, missing) = (try ask(path), try ask("\(adele)/documents/not-there.pdf"))
          app.check(there.status, 403, person.uid)
          app.check(there.text, missing.text, "\(person.uid): the error for an existing file")
        }
        app.check(try files.list("\(adele)/documents/").status, 403, "\(person.uid) listing")
        app.check(try files.upload(path, report, type: "application/pdf").status, 403, "\(person.uid) uploading")
      }
      app.check(try theirs.upload(path, report, type: "application/pdf").status, 403, "a doctor uploading")
      app.check(try theirs.delete(path).status, 403, "a doctor deleting")
    }
    app.step("A patient uploads only PDFs of at most 25 MiB, below their own documents.") {
      app.check(try mine.upload(path, report, type: "text/html").status, 403, "a page")
      app.check(try mine.upload("\(adele)/x.pdf", report, type: "application/pdf").status, 403, "elsewhere")
      app.check(
        try mine.upload("patients/pat-bjorn/documents/x.pdf", report, type: "application/pdf").status, 403, "another's")
      let large = [UInt8](repeating: 0x20, count: 25 << 20 | 1)
      app.check(try mine.upload(path, large, type: "application/pdf").status, 403, "an oversized upload")
      app.check(try mine.download(path).body == report, "a refused upload changed the file")
    }
    app.step("A cached PDF is valid while its ETag matches, and is sent again after a change.") {
      let first = try mine.download(path)
      let known = [("If-None-Match", first.header("etag") ?? "")]
      let again = try mine.download(path, headers: known)
      app.check(again.status, 304)
      app.check(again.body.isEmpty, "a 304 has a body")
      let corrected = report + Array("%%EOF\n".utf8)
      app.check(try mine.upload(path, corrected, type: "application/pdf").status, 200, "a corrected file")
      app.check(try mine.download(path, headers: known).body == corrected, "the download is not the corrected file")
    }
    app.step("A file is unreadable when the share ends, and gone when the patient deletes it.") {
      app.allow(try patient.update("shares/doc-ferri_pat-adele", ["scopes": ["measurements"]]))
      app.check(try theirs.download(path).status, 403, "the status without the scope")
      app.allow(try patient.update("shares/doc-ferri_pat-adele", ["scopes": ["documents"], "expires": past]))
      app.check(try theirs.download(path).status, 403, "the status after the end")
      app.check(try mine.delete(path).status, 204)
      app.check(try mine.download(path).status, 404)
    }
  }
}
