import Foundation
import HearthClient
import Testing
import TestSupport

/// The scenario with apps of a patient and of a doctor that use the Swift client.
extension FitCareScenario {
  private struct Profile: Codable, Sendable {
    var bloodGroup: String
    var emergencyContacts: [Contact]

    struct Contact: Codable, Sendable {
      var name: String
      var phone: String
    }
  }

  private struct Measurement: Codable, Sendable {
    var kind: String
    var value: Double
    var unit: String
    var at: Date
  }

  private struct Share: Codable, Sendable {
    var reader: String
    var patient: String
    var scopes: [String]
    var expires: Date
  }

  @Test(.timeLimit(.minutes(10))) func scenarioWorksWithTheSwiftClient() async throws {
    try await Scenario.run("fit-care") { app in
      let patient = try app.appInSwift(of: "pat-adele")
      let doctor = try app.appInSwift(of: "doc-muller")
      app.step("Emergency contacts are readable at once, and again at low cost.") {
        let (profile, again) = try awaitResult {
          let adele = patient.document("patients/pat-adele")
          let (snapshot, tag) = try await adele.get(as: Profile.self, unless: nil)
          return (snapshot?.data, try await adele.get(as: Profile.self, unless: tag).snapshot?.data)
        }
        app.check(profile?.emergencyContacts.map(\.phone), ["+39 02 555 1317"])
        app.check(again?.bloodGroup, nil, "the unchanged profile")
      }
      app.step("Charts show averages per kind of measurement.") {
        let (values, mean, count) = try awaitResult {
          let since = Date(timeIntervalSince1970: 1_735_689_600)
          let weights = patient.collection("patients/pat-adele/measurements").where("kind", .equal, "weight")
            .where("at", .greaterThanOrEqual, .timestamp(.init(since)))
          let values = try await weights.order(by: "at").get(as: Measurement.self).data.map(\.value)
          return (values, try await weights.average(of: "value"), try await weights.count())
        }
        app.check(count, values.count)
        app.check(abs((mean ?? 0) - values.reduce(0, +) / Double(values.count)) < 1e-9, "the mean is \(mean ?? .nan)")
      }
      try Self.sharesInSwift(app, patient, doctor)
    }
  }

  private static func sharesInSwift(_ app: Scenario, _ patient: Hearth, _ doctor: Hearth) throws {
    app.step("A doctor reads while a share is valid. An open screen ends with the share, before any further change.") {
      let seen = try awaitResult {
        let place = "patients/pat-adele/measurements"
        let weights = doctor.collection(place).where("kind", .equal, "weight")
        let before = try await codeOfRefusal { _ = try await weights.get() }
        var share = Share(
          reader: "doc-muller", patient: "pat-adele", scopes: ["measurements"],
          expires: Date(timeIntervalSinceNow: 3600))
        let given = patient.document("shares/doc-muller_pat-adele")
        try await given.set(share)
        var screen = weights.snapshots(as: Measurement.self).makeAsyncIterator()
        let count = try await screen.next()?.documents.count ?? 0
        let new = Measurement(kind: "weight", value: 60.5, unit: "kg", at: Date(timeIntervalSince1970: 1_750_000_000))
        try await patient.document("\(place)/new").set(new)
        let ids = try await screen.next()?.changes.map(\.document.id)
        share.expires = Date(timeIntervalSince1970: 0)
        try await given.set(share)
        try await patient.document("\(place)/secret").set(new)
        var later: [String] = []
        let end = try await codeOfRefusal {
          while let snapshot = try await screen.next() { later += snapshot.documents.map(\.id) }
        }
        return (
          before, count > 0, ids, end, later.contains("secret"), try await codeOfRefusal { _ = try await weights.get() }
        )
      }
      app.check(seen.0, .permissionDenied, "the error for an expired share")
      app.check(seen.1, "the first snapshot is empty")
      app.check(seen.2, ["new"], "the new documents on the open screen")
      app.check(seen.3, .permissionDenied, "the error that ends the open screen")
      app.check(!seen.4, "the screen showed a measurement after the end")
      app.check(seen.5, .permissionDenied, "the error after the end")
    }
  }
}
