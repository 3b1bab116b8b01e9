import Foundation
import TestSupport

/// A client that changes a small field of large documents, so that the tables of a commit log are full after some commits.
final class LogFiller: AppendClient {
  /// The size of a table at which a server flushes it, in bytes.
  static let tableBytes = 20 << 20

  private static let documents = 2
  private static let text = String(repeating: "x", count: 900_000)

  private let http: TestHTTPClient
  /// The acknowledged commits of all such clients.
  private let commits: Observed<Int>

  init(port: UInt16, _ commits: Observed<Int>) {
    http = TestHTTPClient(port: port, timeoutSeconds: 20)
    self.commits = commits
  }

  /// Stores the documents at first, and then changes them. The log has each whole document, and its state before.
  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    let number = commits.value
    let writes = (0..<Self.documents).map { document in
      let name = "\(AppendWorkload.root)/filler/\(document)"
      let count = #""n": {"integerValue": "\#(number)"}"#
      return number == 0
        ? #"{"update": {"name": "\#(name)", "fields": {"text": {"stringValue": "\#(Self.text)"}, \#(count)}}}"#
        : #"{"update": {"name": "\#(name)", "fields": {\#(count)}}, "updateMask": {"fieldPaths": ["n"]}}"#
    }
    let response = try http.send(
      "POST", "/v1/\(AppendWorkload.root):commit",
      headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")],
      body: Array(#"{"writes": [\#(writes.joined(separator: ","))]}"#.utf8))
    if response.status != 200 { recorder.problems.append("filler: \(response.status) \(response.text)") }
    commits.update { $0 += 1 }
  }

  /// Returns the length of the largest data file in a data directory.
  static func dataFileBytes(in directory: String) -> Int {
    let files = FileManager.default.enumerator(atPath: directory)
    var most = 0
    while let path = files?.nextObject() as? String {
      guard path.hasSuffix("/data.mdb") else { continue }
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(path)")
      most = max(most, (attributes?[.size] as? Int) ?? 0)
    }
    return most
  }
}
