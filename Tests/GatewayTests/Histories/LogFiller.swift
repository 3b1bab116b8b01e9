import Foundation
import TestSupport

/// A client that stores large documents, so that the tables of a commit log are full after some commits.
final class LogFiller: AppendClient {
  /// The size of a table at which a server flushes it, in bytes.
  static let tableBytes = 20 << 20

  private static let documents = 8
  private static let fields = Array(
    #"{"fields": {"text": {"stringValue": "\#(String(repeating: "x", count: 900_000))"}}}"#.utf8)

  private let http: TestHTTPClient
  private var number = 0

  init(port: UInt16) { http = TestHTTPClient(port: port, timeoutSeconds: 20) }

  /// Replaces one of the documents. The log also has the state before.
  func step(_ recorder: inout AppendRecorder, _ random: inout SplitMix) throws {
    number += 1
    let response = try http.send(
      "PATCH", "/v1/\(AppendWorkload.root)/filler/\(number % Self.documents)",
      headers: [("Authorization", "Bearer owner"), ("Content-Type", "application/json")], body: Self.fields)
    if response.status != 200 { recorder.problems.append("filler: \(response.status) \(response.text)") }
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
