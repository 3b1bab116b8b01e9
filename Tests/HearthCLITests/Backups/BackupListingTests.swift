import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

@testable import HearthCLI

/// The process that lists backups for the console of a server.
@Suite struct BackupListingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private final class Outcomes: Sendable {
    private let outcomes = Mutex<[BackupListing.Outcome]>([])
    var all: [BackupListing.Outcome] { outcomes.withLock { $0 } }
    func add(_ outcome: BackupListing.Outcome) { outcomes.withLock { $0.append(outcome) } }
  }

  /// A listing by a shell script.
  private func listing(_ script: String, secondsMax: Int = 60) -> BackupListing {
    BackupListing(["-c", script], of: "the place", secondsMax: secondsMax, program: "/bin/sh")
  }

  @Test func manyCallersShareFewProcessesAndNoneWaitsForever() throws {
    let starts = directory.file("starts")
    let listing = listing("echo x >> '\(starts)'; exec sleep 1000", secondsMax: 1)
    let outcomes = Outcomes()
    for _ in 0..<50 { #expect(listing.list { outcomes.add($0) }) }
    #expect(OtherProcess.eventually { outcomes.all.count == 50 })
    #expect(outcomes.all.allSatisfy { $0 == .failed("the place did not respond within 1 seconds") })
    // The first one, and one for all who asked meanwhile.
    #expect(try directory.text("starts").count <= 2 * 2)
    // A stopped object starts no process, and responds.
    listing.stop()
    #expect(listing.list { outcomes.add($0) })
    #expect(OtherProcess.eventually { outcomes.all.last == .failed("the server is stopping") })
  }

  @Test func aStopKillsTheProcess() throws {
    let file = directory.file("pid")
    let listing = listing("echo $$ > '\(file)'; exec sleep 1000")
    let outcomes = Outcomes()
    #expect(listing.list { outcomes.add($0) })
    #expect(OtherProcess.eventually { (try? directory.text("pid").hasSuffix("\n")) == true })
    let pid = try #require(pid_t(try directory.text("pid").dropLast()))
    listing.stop()
    #expect(kill(pid, 0) == -1 && errno == ESRCH)
    #expect(outcomes.all.count == 1)
  }

  @Test func theOutputOrTheErrorIsPassed() throws {
    let outcomes = Outcomes()
    for script in [
      "echo '{}'", "echo 'hearth backups list: error: no folder' >&2; echo 'See `hearth help`.' >&2; exit 1", "exit 3",
    ] {
      let count = outcomes.all.count
      #expect(listing(script).list { outcomes.add($0) })
      #expect(OtherProcess.eventually { outcomes.all.count == count + 1 })
    }
    for outcome in [
      BackupListing.Outcome.listed("{}\n"), .failed("no folder"), .failed("the place cannot be read"),
    ] { #expect(outcomes.all.contains(outcome), "\(outcomes.all)") }
  }

  @Test(arguments: [
    ("hearth backups create: error: no such place\nSee `hearth help backups create`.\n", "no such place"),
    ("hearth: a is a full backup: b\nhearth backups create: error: full\n", "full"),
    ("hearth: damaged content\n", "damaged content"),
    ("hearth backups create: interrupted\n", "interrupted"),
    ("Killed: 9\n", "Killed: 9"),
    ("", nil),
  ])
  func theReasonIsTheLineWithTheError(output: String, reason: String?) {
    #expect(VerbProcess.reason(in: output) == reason)
  }
}
