import Foundation

extension Load {
  /// Runs a load of GetDocument calls over gRPC for a limited time, with `h2load` on one thread.
  ///
  /// - Parameters:
  ///   - name: the full name of the document.
  ///   - connections: the number of connections.
  ///   - streams: the number of concurrent calls on each connection.
  /// - Throws: ``BenchmarkError`` if `h2load` fails, or if the responses are too short to contain the document.
  static func getDocument(
    on server: any PeerServer, name: String, connections: Int, streams: Int, seconds: Int = 5, warmUpSeconds: Int
  ) throws -> Load {
    let request = "\(try Run.makeDirectory("h2load"))/request"
    let field = [0x0A, UInt8(name.utf8.count)] + Array(name.utf8)
    try Data([0, 0, 0, 0, UInt8(field.count)] + field).write(to: URL(fileURLWithPath: request))
    let arguments = [
      "-t1", "-c\(connections)", "-m\(streams)", "-d", request, "-H", "content-type: application/grpc", "-H",
      "te: trailers", "http://127.0.0.1:\(server.port)/google.firestore.v1.Firestore/GetDocument",
    ]
    if warmUpSeconds > 0 { _ = try h2load(["-D\(warmUpSeconds)"] + arguments, seconds: warmUpSeconds) }
    let (cpu, written) = (server.process.cpuSeconds, server.process.bytesWritten)
    let (requests, answerBytes) = try h2load(["-D\(seconds)"] + arguments, seconds: seconds)
    guard answerBytes / requests > Double(name.utf8.count) else {
      throw BenchmarkError("the responses contain no document: \(Int(answerBytes / requests)) bytes each")
    }
    return Load(
      requests: requests, requestsPerSecond: requests / Double(seconds),
      cpuMicrosecondsPerRequest: (server.process.cpuSeconds - cpu) / requests * 1e6,
      bytesWritten: Double(server.process.bytesWritten - written))
  }

  private static func h2load(_ arguments: [String], seconds: Int) throws -> (requests: Double, answerBytes: Double) {
    let output = "\(Run.scratchDirectory)/h2load.txt"
    let process = try ChildProcess(["h2load"] + arguments, output: output)
    defer { process.stop() }
    let status = process.wait(seconds: Double(seconds) + 20)
    let text = try String(contentsOfFile: output, encoding: .utf8)
    // "requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, …" and "traffic: … (123) headers …, 1MB (456) data"
    let words = text.split { $0 == " " || $0 == "," || $0 == "\n" || $0 == "(" || $0 == ")" }
    func number(before word: String, behind start: String) -> Double? {
      guard let line = words.firstIndex(where: { $0 == start }),
        let place = words[line...].firstIndex(where: { $0 == word })
      else { return nil }
      return Double(words[place - 1])
    }
    guard status == 0, let requests = number(before: "succeeded", behind: "requests:"), requests > 0,
      number(before: "failed", behind: "requests:") == 0, let bytes = number(before: "data", behind: "traffic:")
    else { throw BenchmarkError("unexpected output of h2load:\n\(text)") }
    return (requests, bytes)
  }
}
