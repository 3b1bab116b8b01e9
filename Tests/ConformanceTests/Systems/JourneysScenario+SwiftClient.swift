import Foundation
import HearthClient
import Testing
import TestSupport

/// The scenario with an app that uses the Swift client.
extension JourneysScenario {
  private struct Journey: Codable, Sendable {
    var title: String
    var authors: [String]
    var paid: Bool
  }

  private struct Exercise: Codable, Sendable {
    var order: Int
    var text: String?
    var input: String?
  }

  private struct Recommendation: Codable, Sendable {
    var practice: DocumentReference
  }

  private struct Progress: Codable, Sendable {
    var rating: Int
    var mood: String?
    var completedAt: Date
  }

  private struct Input: Codable, Sendable {
    var uid: String
    var text: String
  }

  @Test(.timeLimit(.minutes(10))) func scenarioWorksWithTheSwiftClient() async throws {
    try await Scenario.run("journeys") { app in
      let phone = app.appInSwift()
      try Self.contentInSwift(app, phone)
      try Self.progressInSwift(app, phone)
    }
  }

  private static func contentInSwift(_ app: Scenario, _ phone: Hearth) throws {
    app.step("Any signed-in user reads content, but paid journeys need a subscriber claim.") {
      let seen = try awaitResult {
        let free = phone.collection("journeys").where("paid", .equal, false)
        let refused = try await codeOfRefusal { _ = try await free.get() }
        try await phone.auth.signInAnonymously()
        return (
          refused, try await free.get(as: Journey.self).documents.map(\.id),
          try await codeOfRefusal { _ = try await phone.collection("journeys").get() },
          try await codeOfRefusal { _ = try await phone.document("journeys/grief").get(as: Journey.self) }
        )
      }
      app.check(seen.0, .permissionDenied, "the error for an unauthenticated caller")
      app.check(seen.1, ["being-heard", "first-steps", "sleep-well"])
      app.check(seen.2, .permissionDenied, "all journeys")
      app.check(seen.3, .permissionDenied, "a paid journey")
    }
    app.step("Exercises have an order. An app follows references from recommended.") {
      let (orders, followed) = try awaitResult {
        let exercises = phone.collection("journeys/first-steps/practices/arriving/exercises")
        var followed: [String] = []
        for pick in try await phone.collection("recommended").order(by: "order").get(as: Recommendation.self).data {
          do {
            followed.append(try await pick.practice.get().exists ? pick.practice.id : "withdrawn")
          } catch let error as HearthClientError { followed.append(error.code.rawValue) }
        }
        return (try await exercises.order(by: "order").get(as: Exercise.self).data.map(\.order), followed)
      }
      app.check(orders, [1, 2, 3, 4, 5, 6])
      let paid = "PERMISSION_DENIED"
      app.check(followed, ["arriving", "closing-the-day", paid, paid, "asking", "naming-feelings", "withdrawn"])
    }
  }

  private static func progressInSwift(_ app: Scenario, _ phone: Hearth) throws {
    app.step("A guest's progress is live, and continues when the guest is linked to an email address.") {
      let tablet = app.appInSwift()
      let seen = try awaitResult {
        let uid = phone.auth.currentUser?.uid ?? ""
        let practices = phone.collection("profiles/\(uid)/practices")
        var screen = practices.snapshots(as: Progress.self).makeAsyncIterator()
        var shown = [try await screen.next()?.documents.map(\.id)]
        let done = Progress(rating: 4, mood: "calm", completedAt: Date(timeIntervalSince1970: 1_750_000_000))
        var batch = phone.batch()
        try batch.set(practices.document("arriving"), done)
        let input = practices.document("arriving").collection("inputs").document("arriving-03")
        try batch.set(input, Input(uid: uid, text: "tired"))
        _ = try await batch.commit()
        shown.append(try await screen.next()?.documents.map(\.id))

        let member = try await phone.auth.link(email: "mia@example.com", password: "correct horse")
        let elsewhere = try await tablet.auth.signIn(email: "mia@example.com", password: "correct horse")
        try await tablet.document("profiles/\(uid)/practices/letters").set(done)
        while shown.last??.count != 2 { shown.append(try await screen.next()?.documents.map(\.id)) }
        let inputs = tablet.collectionGroup("inputs").where("uid", .equal, .string(uid))
        return (
          shown.compactMap { $0 }, [member.uid, elsewhere.uid, uid],
          try await inputs.get(as: Input.self).data.map(\.text),
          try await codeOfRefusal { _ = try await tablet.collectionGroup("inputs").get() }
        )
      }
      app.check(seen.0.first, [])
      app.check(seen.0.last, ["arriving", "letters"], "the documents on the screen that stayed open")
      app.check(Set(seen.1).count, 1, "uids")
      app.check(seen.2, ["tired"], "all inputs")
      app.check(seen.3, .permissionDenied, "the inputs of all users")
    }
    app.step("Paid journeys open with a subscriber claim, once the app has a new token.") {
      let uid = phone.auth.currentUser?.uid ?? ""
      try app.hearth("accounts", "set-claims", uid, #"{"subscriber": true}"#)
      let journeys = try awaitResult {
        _ = try await phone.auth.token(forcingRefresh: true)
        return try await phone.collection("journeys").get(as: Journey.self).data
      }
      app.check(journeys.count, 6)
      app.check(journeys.contains { $0.paid }, "the app sees no paid journey")
    }
  }
}
