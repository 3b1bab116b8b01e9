import Accounts
import Foundation
import Testing
import TestSupport

@Suite struct MailCommandTests {
  private static func code(_ kind: ActionCode.Kind) -> ActionCode {
    ActionCode(
      code: "c0de", kind: kind, email: "ann@example.com", newEmail: "new@example.com",
      link: "https://app.example/?oobCode=c0de", createdAt: 0)
  }

  @Test(arguments: ActionCode.Kind.allCases)
  func commandReceivesTheMail(kind: ActionCode.Kind) async throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/mail"
    let mail = MailCommand("cat > '\(file).part' && mv '\(file).part' '\(file)'", sender: "app@example.com")
    try mail.send(Self.code(kind))
    let isWritten = try await onDedicatedThread {
      OtherProcess.eventually { FileManager.default.fileExists(atPath: file) }
    }
    #expect(isWritten)
    let text = try String(contentsOfFile: file, encoding: .utf8)
    let parts = text.components(separatedBy: "\n\n")
    let to = kind == .verifyAndChangeEmail ? "new@example.com" : "ann@example.com"
    #expect(parts[0].contains("From: app@example.com\nTo: \(to)\nSubject: "))
    #expect(parts.contains("https://app.example/?oobCode=c0de"))
  }

  @Test func failedCommandIsReported() async throws {
    let reasons = Observed<[String]>([])
    let mail = MailCommand("exit 3", sender: "app@example.com") { line in reasons.update { $0.append(line) } }
    try mail.send(Self.code(.resetPassword))
    #expect(await reasons.becomes { !$0.isEmpty })
    #expect(reasons.value == ["the mail command ended with status 3"])
  }
}
