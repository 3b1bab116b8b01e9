import Foundation
import Testing
import TestSupport

/// `hearth import --server` over several connections.
@Suite(.needs(.hearth)) struct ServerImportTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func run(_ words: [String]) throws -> String {
    let (exit, output) = try HearthBinary.run(words, timeoutSeconds: 120)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  @Test(arguments: ["1", "8"])
  func commitsOnSeveralConnectionsStoreAllDocuments(connections: String) throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let lines = (0..<6000).map { #"{"path": "items/i\#($0)", "fields": {"n": \#($0)}}"# }
    let file = try directory.write("items.ndjson", lines.joined(separator: "\n"))
    let place = ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]
    let command = ["import", file, "--connections", connections] + place
    #expect(try run(command).hasPrefix("imported 6000 documents"))
    #expect(try run(command).hasPrefix("imported 6000 documents (6000 unchanged)"))
    let data = directory.file("data")
    _ = try run(["import", file, "--data", data, "--project", "demo"])
    #expect(try run(["export"] + place) == run(["export", "--data", data, "--project", "demo"]))
  }

  /// The last of several lines with the same path remains, although commits run at the same time.
  @Test func repeatedDocumentsKeepTheirOrder() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let lines = (0..<3000).map { #"{"path": "items/i\#($0 % 700)", "fields": {"n": \#($0)}}"# }
    let file = try directory.write("items.ndjson", lines.joined(separator: "\n"))
    let place = ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]
    _ = try run(["import", file] + place)
    let text = try run(["export"] + place)
    for id in [0, 199, 200, 699] {
      let last = id + 700 * (id < 200 ? 4 : 3)
      #expect(text.contains("\"i\(id)\": {\"n\": \(last)}"), "\(id)")
    }
  }

  @Test func aFailedImportSaysHowMuchIsStored() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let lines = (0..<1500).map { #"{"path": "items/i\#($0)", "fields": {"n": \#($0)}}"# }
    let file = try directory.write("items.ndjson", lines.joined(separator: "\n"))
    // The last response of the server is final.
    let proxy = try CuttingProxy(to: server.port, [.cut(up: 30_000), .answer(403)])
    let words = ["import", file, "--server", "http://127.0.0.1:\(proxy.port)", "--project", "demo"]
    let failed = try HearthBinary.run(words + ["--connections", "1"])
    #expect(failed.exit == .code(1) && failed.output.contains(" of this import "), "\(failed.output)")
  }

  @Test func anImportSurvivesTemporaryFailures() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let lines = (0..<1500).map { #"{"path": "items/i\#($0)", "fields": {"n": \#($0)}}"# }
    let file = try directory.write("items.ndjson", lines.joined(separator: "\n"))
    let proxy = try CuttingProxy(to: server.port, [.answer(503), .cut(up: 30_000), .answer(429)])
    let words = ["import", file, "--server", "http://127.0.0.1:\(proxy.port)", "--project", "demo"]
    #expect(try run(words + ["--connections", "1"]).hasPrefix("imported 1500 documents"))
    #expect(proxy.isThrough)
  }
}
