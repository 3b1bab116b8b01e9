import Dispatch
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// Features of the HTTP layer: entity tags, compression, CORS, size limits, many connections.
@Suite struct HTTPTests {
  private static let one = #"{"fields":{"a":{"integerValue":"1"}}}"#

  @Test func entityTagsDetectChanges() throws {
    let server = try TestServer()
    _ = try server.call("PATCH", "/c/x", Self.one)
    for path in ["/c/x", "/c", "/empty"] {
      let reply = try server.call("GET", path)
      let tag = try #require(reply.header("etag"), "no tag for \(path)")
      for header in [tag, "W/\"other\", \(tag)", "*", tag.replacingOccurrences(of: "W/", with: "")] {
        let again = try server.call("GET", path, headers: [("If-None-Match", header)])
        #expect(again.status == 304, "\(path) \(header)")
        #expect(again.body.isEmpty && again.header("etag") == tag)
      }
      #expect(try server.call("GET", path, headers: [("If-None-Match", "\"other\"")]).status == 200)
    }
    let (document, list, empty) = (
      try server.call("GET", "/c/x").header("etag"), try server.call("GET", "/c").header("etag"),
      try server.call("GET", "/empty").header("etag")
    )
    func status(_ path: String, _ tag: String?) throws -> Int {
      try server.call("GET", path, headers: [("If-None-Match", tag ?? "")]).status
    }
    _ = try server.call("PATCH", "/c/x", Self.one)  // Changes nothing.
    #expect(try status("/c/x", document) == 304 && status("/c", list) == 304)
    _ = try server.call("PATCH", "/c/y", Self.one)
    #expect(try status("/c/x", document) == 304 && status("/c", list) == 200 && status("/empty", empty) == 304)
    _ = try server.call("PATCH", "/c/x", "{}")
    #expect(try status("/c/x", document) == 200)
    let last = try server.call("GET", "/c").header("etag")
    #expect(try server.call("DELETE", "/emulator/v1/\(TestServer.name)").status == 200)
    #expect(try status("/c/x", document) == 404 && status("/c", last) == 200 && status("/empty", empty) == 200)
  }

  @Test func responsesAreCompressed() throws {
    let server = try TestServer()
    _ = try server.call(
      "PATCH", "/c/x", #"{"fields":{"a":{"stringValue":"\#(String(repeating: "long ", count: 2000))"}}}"#)
    let plain = try server.call("GET", "/c/x")
    let packed = try server.call("GET", "/c/x", headers: [("Accept-Encoding", "gzip")])
    #expect(packed.status == 200 && packed.header("content-encoding") == "gzip")
    #expect(packed.body.count < plain.body.count / 5 && packed.body.prefix(2) == [0x1F, 0x8B])
    #expect(plain.header("content-encoding") == nil)
  }

  @Test func otherOriginsAreAllowed() throws {
    let server = try TestServer()
    let origin = ("Origin", "http://localhost:3000")
    let preflight = try server.call(
      "OPTIONS", "/c/x",
      headers: [
        origin, ("Access-Control-Request-Method", "PATCH"), ("Access-Control-Request-Headers", "content-type,x-mine"),
      ])
    #expect(preflight.status == 200 && preflight.body.isEmpty)
    #expect(preflight.header("access-control-allow-origin") == origin.1)
    #expect(preflight.header("access-control-allow-headers") == "content-type,x-mine")
    #expect(preflight.header("access-control-allow-methods")?.contains("PATCH") == true)
    for (method, path) in [("GET", "/c/none"), ("GET", "/c"), ("GET", "/"), ("POST", ":unknown")] {
      let reply = try server.call(method, path, headers: [origin])
      #expect(reply.header("access-control-allow-origin") == origin.1, "\(method) \(path)")
      #expect(reply.header("vary")?.lowercased().contains("origin") == true)
    }
    #expect(try server.call("GET", "/c").header("access-control-allow-origin") == nil)
    // Browsers avoid the preflight by sending JSON as text.
    let text = try server.call("POST", ":commit", #"{"writes":[]}"#, headers: [origin, ("Content-Type", "text/plain")])
    #expect(text.status == 200)
  }

  @Test func headRequestsAndProbesWork() throws {
    let server = try TestServer()
    #expect(try server.call("GET", "/").text == "Ok\n")
    _ = try server.call("PATCH", "/c/x", Self.one)
    let get = try server.call("GET", "/c/x")
    let head = try server.call("HEAD", "/c/x")
    #expect(head.status == 200 && head.body.isEmpty && head.header("etag") == get.header("etag"))
    #expect(head.header("content-length") == "\(get.body.count)")
    #expect(get.header("content-type") == "application/json; charset=UTF-8")
    #expect(try server.call("HEAD", "/c/none").status == 404)
    let compact = try server.call("GET", "/c/x?prettyPrint=false")
    #expect(compact.body.count < get.body.count && !compact.text.dropLast().contains("\n"))
  }

  @Test func productionDeniesUnauthenticatedCallers() throws {
    let server = try TestServer(.production)
    for (method, path, body) in [
      ("GET", "/c/x", nil), ("GET", "/c", nil), ("POST", "/c", "{}"), ("PATCH", "/c/x", "{}"), ("DELETE", "/c/x", nil),
      ("POST", ":commit", "{}"), ("POST", ":commit", #"{"writes":[{"delete":"\#(TestServer.name)/c/x"}]}"#),
      ("POST", ":batchWrite", "{}"), ("POST", ":batchGet", "{}"), ("POST", ":beginTransaction", "{}"),
      ("POST", ":rollback", "{}"), ("POST", ":listCollectionIds", "{}"),
      ("DELETE", "/emulator/v1/\(TestServer.name)", nil),
      ("GET", "/v1/projects/other/databases/(default)/documents/c/x", nil),
    ] as [(String, String, String?)] {
      let reply = try server.call(method, path, body)
      #expect(reply.status == 403, "\(method) \(path): \(reply.status) \(reply.text)")
      #expect(reply.message == "Missing or insufficient permissions.")
    }
    #expect(try server.call("GET", "/").status == 200)
  }

  @Test func clearingDeletesOneDatabase() throws {
    let server = try TestServer()
    _ = try server.call("PATCH", "/c/x/s/y", Self.one)
    let other = "/v1/projects/p/databases/second/documents"
    _ = try server.call("PATCH", other + "/c/x", Self.one)
    let cleared = try server.call("DELETE", "/emulator/v1/\(TestServer.name)")
    #expect(cleared.status == 200 && matches("{}", cleared))
    #expect(try server.call("POST", ":listCollectionIds").text == "{}\n")
    #expect(try server.call("GET", other + "/c/x").status == 200)
    #expect(try server.call("GET", "/emulator/v1/\(TestServer.name)").status == 404)
    #expect(try server.call("PATCH", "/c/x", Self.one).status == 200)
  }

  @Test func sizesAreLimited() throws {
    let server = try TestServer()
    func document(_ count: Int) -> String {
      #"{"fields":{"a":{"stringValue":"\#(String(repeating: "x", count: count))"}}}"#
    }
    #expect(try server.call("PATCH", "/c/x", document(1_048_487)).status == 200)
    let long = try server.call("PATCH", "/c/y", document(1_048_488))
    #expect(long.status == 400 && long.message == "The value of property \"a\" is longer than 1048487 bytes.")
    let half = String(repeating: "x", count: 700_000)
    let large = try server.call(
      "PATCH", "/c/y", #"{"fields":{"a":{"stringValue":"\#(half)"},"b":{"stringValue":"\#(half)"}}}"#)
    #expect(large.status == 400)
    #expect(large.message == "A document cannot be written because it exceeds the maximum size allowed.")
    #expect(try server.call("GET", "/c/x").json("fields", "a", "stringValue")?.count == 1_048_487)
    // Bodies of up to 10 MiB are accepted.
    let filler = String(repeating: " ", count: (10 << 20) - 2)
    #expect(try server.call("POST", ":commit", "{\(filler)}").status == 200)
    #expect(try server.call("POST", ":commit", "{\(filler) }").status == 413)
    let thousand = String(repeating: "x", count: 1000)
    let writes = (0..<9000).map {
      #"{"update":{"name":"\#(TestServer.name)/m/d\#($0)","fields":{"a":{"stringValue":"\#(thousand)"}}}}"#
    }
    let many = try server.call("POST", ":commit", #"{"writes":[\#(writes.joined(separator: ","))]}"#)
    #expect(many.status == 200, "\(many.message)")
    let names = (0..<9000).map { "\"\(TestServer.name)/m/d\($0)\"" }.joined(separator: ",")
    let batch = try server.call("POST", ":batchGet", #"{"documents":[\#(names),"\#(TestServer.name)/m/none"]}"#)
    #expect(batch.json as? [Any] != nil && (batch.json as? [Any])?.count == 9001)
    #expect(batch.json(9000, "missing") == TestServer.name + "/m/none")
  }

  @Test func nestingDepthIsLimited() throws {
    let server = try TestServer()
    func nested(_ levels: Int) -> String {
      let open = String(repeating: #"{"mapValue":{"fields":{"a":"#, count: levels)
      return #"{"fields":{"a":"# + open + #"{"nullValue":null}"# + String(repeating: "}}}", count: levels) + "}}"
    }
    #expect(try server.call("PATCH", "/c/x", nested(20)).status == 200)
    for levels in [21, 300, 2000, 100_000] {
      let reply = try server.call("PATCH", "/c/x", nested(levels))
      #expect(reply.status == 400, "\(levels) levels: \(reply.status)")
    }
    #expect(try server.call("PATCH", "/c/x", String(repeating: "[", count: 1 << 20)).status == 400)
    let path = Array(repeating: "a", count: 500_000).joined(separator: ".")
    for transform in [
      #""updateTransforms":[{"fieldPath":"\#(path)","increment":{"integerValue":1}}]"#,
      #""updateMask":{"fieldPaths":["\#(path)"]}"#,
    ] {
      let reply = try server.call(
        "POST", ":commit", #"{"writes":[{"update":{"name":"\#(TestServer.name)/c/x"},\#(transform)}]}"#)
      #expect(reply.status == 400)
    }
    let short = Array(repeating: "a", count: 10_000).joined(separator: ".")
    #expect(try server.call("PATCH", "/c/x?updateMask.fieldPaths=\(short)", Self.one).status < 500)
    #expect(try server.call("GET", "/c/x?mask.fieldPaths=\(short)").status < 500)
    let segments = String(repeating: "/a/b", count: 101)
    #expect(try server.call("PATCH", segments, Self.one).status == 400)
    #expect(try server.call("GET", String(repeating: "/a/b", count: 100)).status == 404)
    #expect(try server.call("GET", "/").status == 200)
  }

  @Test func manyConnectionsMayCommitAtOnce() throws {
    let server = try TestServer()
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 16) { thread in
      for round in 0..<12 {
        let body = #"""
          {"writes":[{"update":{"name":"\#(TestServer.name)/c/sum"},"updateMask":{},
          "updateTransforms":[{"fieldPath":"n","increment":{"integerValue":"1"}}]},
          {"update":{"name":"\#(TestServer.name)/own/t\#(thread)-\#(round)"}}]}
          """#
        do {
          let reply = try server.call("POST", ":commit", body)
          if reply.status != 200 { failures.withLock { $0.append(reply.text) } }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    #expect(failures.withLock { $0 }.isEmpty)
    #expect(try server.call("GET", "/c/sum").json("fields", "n", "integerValue") == "192")
    #expect(try server.call("GET", "/own?pageSize=1000").json("documents", as: [Any].self)?.count == 192)
  }
}
