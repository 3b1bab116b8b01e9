@testable import HearthServer
import LogEngine
import Replication
import Testing

@Suite struct DigestMessageTests {
  private static let store = ReplicaDigest.Store(
    name: StoreName(database: "(default)")!, entries: 12, bytes: 3456, digest: [UInt8](repeating: 0xA5, count: 32))

  @Test(
    arguments: [
      (.at(0), "at 0\n"),
      (.passed(12), "passed 12\n"),
      (.late(1 << 59), "late 576460752303423488\n"),
      (.busy, "busy\n"),
      (.failed("the file  is damaged"), "failed the file  is damaged\n"),
      (.bytes(65536), "bytes 65536\n"),
      (.store(store), "store documents/(default) 12 3456 \(String(repeating: "a5", count: 32))\n"),
      (.end(LogPosition(sequence: 5, epoch: 2, chain: .max)), "end 5 2 18446744073709551615\n"),
    ] as [(DigestMessage, String)])
  func aLineIsReadAsItWasWritten(_ message: DigestMessage, _ line: String) {
    #expect(message.line == line)
    #expect(DigestMessage(line.dropLast()) == message)
  }

  @Test func aReasonStaysInItsLine() {
    #expect(DigestMessage.failed("one\ntwo\r\nthree").line == "failed one two three\n")
  }

  @Test(arguments: [
    "", "at", "at x", "at -1", "at 1 2", "at 18446744073709551616", "passed", "late 1 2", "busy 1", "bytes x",
    "end 1 2",
    "store ../../etc 1 2 a5", "store accounts 1 2", "store accounts 1 2 a", "store accounts x 2 a5", "news 1",
    "at 1152921504606846976", "bytes -1", "bytes 1125899906842624", "store accounts -1 2 a5", "store accounts 1 2 a5a5",
  ])
  func otherLinesAreRefused(_ line: String) {
    #expect(DigestMessage(line) == nil)
  }
}
