import Foundation
import Testing
import TestSupport

@testable import Transport

/// Tests with independent clients, in cleartext on the same port as HTTP/1.
@Suite struct HTTP2ClientTests {
  @Test(
    .needs(.tool(.curl)),
    arguments: [
      ["-X", "GET"], ["-I"], ["-X", "DELETE"], ["-d", "hello"], ["-X", "PATCH", "-d", "{}"], ["--compressed"],
      ["-H", "Accept-Encoding: gzip", "--compressed", "-d", "x"], ["-H", "Expect: 100-continue", "-d", "y"],
    ])
  func curlGetsTheSameResponseOverBothProtocols(arguments: [String]) throws {
    let server = try TestServer { request, exchange in
      let text = "\(request.method) \(request.body.count) " + String(repeating: "text ", count: 1000)
      exchange.respond(status: 201, headers: { $0.add("X-A", "b") }, body: { $0.append(contentsOf: Array(text.utf8)) })
    }
    let replies = try ["--http1.1", "--http2-prior-knowledge"].map { version in
      let outcome = try Tool.curl.run(["-s", "-i", version, "http://127.0.0.1:\(server.port)/a?b"] + arguments)
      #expect(outcome.status == 0, "\(outcome.errors)")
      return outcome.output.split(separator: "\r\n", omittingEmptySubsequences: false).filter { !$0.isEmpty }
    }
    let (old, new) = (replies[0], replies[1])
    let isContinued = old.first == "HTTP/1.1 100 Continue"
    #expect(old.contains("HTTP/1.1 201 Created") && new.first == "HTTP/2 201 ")
    // The body, if there is one.
    #expect(arguments == ["-I"] || old.last == new.last)
    // Names may differ in case and values in surrounding blanks, and the date may have changed.
    func fields(_ lines: [Substring]) -> Set<String> {
      Set(
        lines.dropFirst().dropLast().map { $0.lowercased().replacingOccurrences(of: " ", with: "") }
          .filter { !$0.hasPrefix("date:") && !$0.hasPrefix("http/") })
    }
    #expect(fields(old) == fields(new) || isContinued)
  }

  @Test(.needs(.tool(.curl)))
  func curlTransfersFiveMebibytesBothWays() throws {
    let server = try TestServer { request, exchange in
      let body = Array(request.body)
      exchange.respond(status: 200, headers: { _ in }, compressible: false) { $0.append(contentsOf: body) }
    }
    let directory = try TemporaryDirectory()
    let text = (0..<(5 << 17)).map { String($0 % 10_000_000 + 10_000_000).suffix(8) }.joined()
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path + "/body"))
    let outcome = try Tool.curl.run([
      "-s", "-S", "--http2-prior-knowledge", "--data-binary", "@\(directory.path)/body",
      "http://127.0.0.1:\(server.port)/",
    ])
    #expect(outcome.status == 0 && outcome.output == text, "\(outcome.errors)")
  }

  @Test(.needs(.tool(.nghttp)))
  func nghttpReadsTrailersAndMaySendPriorities() throws {
    let server = try TestServer { _, exchange in
      exchange.respond(
        status: 200, headers: { _ in }, body: { $0.append(contentsOf: Array("body".utf8)) },
        trailers: { $0.add("grpc-status", "0") })
    }
    let outcome = try Tool.nghttp.run(["-v", "-w", "10", "-p", "7", "http://127.0.0.1:\(server.port)/"])
    #expect(outcome.status == 0 && outcome.output.contains("grpc-status: 0"), "\(outcome.output)")
    #expect(outcome.output.contains("\nbody"))
  }

  @Test(
    .needs(.tool(.h2load)),
    arguments: [
      ["-n", "2000", "-c", "4", "-m", "100"], ["-n", "300", "-c", "3", "-m", "10", "-w", "10", "-W", "12"],
    ])
  func h2loadIsServedCompletely(arguments: [String]) throws {
    let server = try TestServer(loops: 2) { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: Thousands())
    }
    let outcome = try Tool.h2load.run(arguments + ["http://127.0.0.1:\(server.port)/"])
    #expect(outcome.output.contains("\(arguments[1]) succeeded, 0 failed, 0 errored, 0 timeout"), "\(outcome.output)")
    #expect(server.server.requestsServed == Int(arguments[1]))
  }
}

/// Nine slices of 1,000 bytes.
private final class Thousands: BodySource {
  private var made = 0

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    made += 1
    out.append(contentsOf: [UInt8](repeating: 0x61, count: 1000))
    return made == 9 ? .finished : .more
  }
}
