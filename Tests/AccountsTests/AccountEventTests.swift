import Testing

@testable import Accounts

/// The text of account events in the log.
@Suite struct AccountEventTests {
  private static func event(
    _ kind: AccountEvent.Kind, _ uid: String? = nil, _ detail: (inout AccountEvent) -> Void = { _ in }
  ) -> AccountEvent {
    var event = AccountEvent(kind, uid: uid, by: .admin, from: "192.0.2.7")
    detail(&event)
    return event
  }

  private static let end = "by admin from 192.0.2.7"

  @Test(arguments: [
    (event(.created, "u") { $0.method = "anonymous" }, "\"u\" created as a guest \(end)"),
    (event(.signedIn, "u") { $0.method = "google.com" }, "\"u\" signed in with google.com \(end)"),
    (event(.signedIn, "u") { $0.method = "emailLink" }, "\"u\" signed in by a mailed link \(end)"),
    (event(.linked, "u") { $0.method = "password" }, "\"u\" linked to a password \(end)"),
    (event(.changed, "u") { $0.fields = ["email", "password"] }, "\"u\" changed (email, password) \(end)"),
    (event(.deleted, "u\" signed in by admin"), #""u\" signed in by admin" deleted \#(end)"#),
    (event(.imported) { $0.count = 3 }, "3 imported \(end)"),
    (event(.keyRevoked) { $0.key = "backend" }, "service key backend was revoked \(end)"),
    (event(.keysRotated) { $0.reason = "immediately" }, "the signing keys were rotated \(end): immediately"),
  ])
  func eventsReadAsSentences(event: AccountEvent, text: String) { #expect("\(event)" == text) }

  @Test func serverEventsNameNoCaller() {
    var event = AccountEvent(.mailFailed)
    event.reason = "the mail command ended with status 1"
    #expect("\(event)" == "a mail could not be sent: the mail command ended with status 1")
    #expect("\(AccountEvent(.emptied, by: .testSuite))" == "all accounts deleted by test suite from this machine")
  }
}
