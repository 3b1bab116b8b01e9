import Foundation
import Glibc
import HearthServer
import Testing
import TestSupport

/// Requests of operators: health, readiness and metrics.
@Suite struct OperationsTests {
  /// The samples of a metrics text, by name and labels. Checks the form of every line.
  private func samples(_ text: String) throws -> [String: Double] {
    var samples: [String: Double] = [:]
    var types: [String: String] = [:]
    var helps: Set<String> = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if line.hasPrefix("# HELP ") {
        let name = String(line.dropFirst(7).prefix { $0 != " " })
        #expect(helps.insert(name).inserted, "two HELP lines: \(line)")
        continue
      }
      if line.hasPrefix("# TYPE ") {
        let words = line.split(separator: " ")
        #expect(words.count == 4 && ["counter", "gauge", "histogram"].contains(words[3]), "\(line)")
        types[String(words[2])] = String(words[3])
        continue
      }
      let match = try #require(
        try /([a-z_]+)(\{[a-z_]+="[^"\\\n]*"(,[a-z_]+="[^"\\\n]*")*\})? (\S+)/.wholeMatch(in: line), "\(line)")
      let value = try #require(Double(match.4), "\(line)")
      let base = String(match.1).replacing(/_(bucket|sum|count)$/, with: "")
      let type = types[String(match.1)] ?? types[base]
      #expect(type != nil && helps.contains(types[base] == "histogram" ? base : String(match.1)), "\(line)")
      // The names of counters end in `_total`, those of gauges do not.
      if types[base] != "histogram" { #expect((type == "counter") == match.1.hasSuffix("_total"), "\(line)") }
      let key = String(line.prefix { $0 != " " } == match.1 ? match.1 : match.1 + (match.2 ?? ""))
      #expect(samples.updateValue(value, forKey: key) == nil, "duplicate: \(line)")
    }
    return samples
  }

  @Test func metricsCountRequests() throws {
    let server = try TestServer(.emulator)
    for n in 1...3 { #expect(try server.call("PATCH", "/c/d\(n)", #"{"fields": {}}"#).status == 200) }
    #expect(try server.call("GET", "/c/d1").status == 200)
    #expect(try server.call("GET", "/c/none").status == 404)
    let query = #"{"structuredQuery": {"from": [{"collectionId": "c"}]}}"#
    #expect(try server.call("POST", ":runQuery", query).status == 200)
    #expect(try server.request("GET", "/nothing").status == 404)
    let reply = try server.request("GET", "/metrics")
    #expect(reply.status == 200)
    #expect(reply.header("content-type") == "text/plain; version=0.0.4; charset=utf-8")
    let found = try samples(reply.text)
    func value(_ name: String) -> Double? { found[name] }
    #expect(value(#"hearth_http_requests_total{dialect="rest",method="patch",status="2xx"}"#) == 3)
    #expect(value(#"hearth_http_requests_total{dialect="rest",method="get",status="2xx"}"#) == 1)
    #expect(value(#"hearth_http_requests_total{dialect="rest",method="get",status="4xx"}"#) == 1)
    #expect(value(#"hearth_http_requests_total{dialect="none",method="get",status="4xx"}"#) == 1)
    #expect(value(#"hearth_http_request_duration_seconds_count{dialect="rest"}"#) == 6)
    #expect(value(#"hearth_http_request_duration_seconds_bucket{dialect="rest",le="+Inf"}"#) == 6)
    #expect(value(#"hearth_commits_total{outcome="ok"}"#) == 3)
    #expect(value("hearth_documents_written_total") == 3)
    // One document by its name, three by the query.
    #expect(value("hearth_documents_read_total") == 4 || value("hearth_documents_read_total") == 5)
    #expect(value(#"hearth_queries_total{kind="query"}"#) == 1)
    #expect(value("hearth_commit_group_size_sum") == 3)
    #expect(value("hearth_commit_duration_seconds_count") == 3)
    #expect(value("hearth_http_connections_total") == 8)
    #expect((value("hearth_http_received_bytes_total") ?? 0) > 300)
    #expect((value("hearth_http_sent_bytes_total") ?? 0) > 300)
    #expect(value("hearth_databases_open") == 1)
    #expect((value(#"hearth_database_used_bytes{project="p",database="(default)"}"#) ?? 0) > 0)
    #expect((value("process_resident_memory_bytes") ?? 0) > 1e6)
    #expect((value("process_open_fds") ?? 0) > 3)
    let started = try #require(value("process_start_time_seconds"))
    #expect(abs(started - Date().timeIntervalSince1970) < 3600)
    #expect(value(#"hearth_build_info{version="\#(Server.version)"}"#) == 1)
  }

  @Test func rulesAndTransactionsAreCounted() throws {
    let rules = "service cloud.firestore { match /databases/{d}/documents { match /open/{x} { allow read; } } }"
    let directory = try TemporaryDirectory()
    let file = try directory.write("operations.rules", rules)
    let server = try TestServer(.emulator) { $0.rules = [.init(file)] }
    #expect(try server.call("GET", "/open/a").status == 404)
    #expect(try server.call("GET", "/shut/a").status == 403)
    #expect(
      try server.call("POST", ":beginTransaction", "{}", headers: [("Authorization", "Bearer owner")]).status == 200)
    // In emulator mode, any caller may read metrics, even if rules are loaded.
    let found = try samples(try server.request("GET", "/metrics").text)
    #expect(found[#"hearth_rules_evaluations_total{decision="allow"}"#] == 1)
    #expect((found[#"hearth_rules_evaluations_total{decision="deny"}"#] ?? 0) >= 1)
    #expect(found["hearth_transactions_begun_total"] == 1)
    #expect(found["hearth_transactions_open"] == 1)
    #expect(found["hearth_rules_stale_files"] == 0)
    try "service cloud.firestore {".write(toFile: file, atomically: true, encoding: .utf8)
    server.server.reload()
    #expect(try samples(try server.request("GET", "/metrics").text)["hearth_rules_stale_files"] == 1)
  }

  @Test func unauthenticatedCallersLearnOnlyReadiness() throws {
    let server = try TestServer(.production)
    #expect(try server.request("GET", "/healthz").text == "ok\n")
    let ready = try server.request("GET", "/readyz")
    #expect(ready.status == 200)
    #expect(ready.text == "{\"status\":\"ready\"}\n")
    for headers in [
      [], [("Authorization", "Bearer owner")], [("Authorization", "Bearer a.b.c")], [("Authorization", "x")],
    ] {
      let metrics = try server.request("GET", "/metrics", headers: headers)
      #expect(metrics.status == 403)
      #expect(!metrics.text.contains("hearth_"))
    }
    #expect(try server.request("POST", "/metrics", "").status == 405)
    #expect(try server.request("GET", "/metrics/x").status == 404)
    // A page in a browser cannot read the response.
    let fromPage = try server.request("GET", "/readyz", headers: [("Origin", "https://evil.test")])
    #expect(fromPage.header("access-control-allow-origin") == nil)
  }

  @Test func readinessNamesTheUnavailablePart() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path
    let server = try TestServer(.emulator) { $0.storage = .directory(path + "/d") }
    #expect(try server.request("GET", "/readyz").status == 200)
    try FileManager.default.moveItem(atPath: path + "/d", toPath: path + "/gone")
    let unready = try server.request("GET", "/readyz")
    #expect(unready.status == 503)
    #expect(unready.text == "{\"status\":\"unavailable\",\"unready\":[\"data\"]}\n")
    try FileManager.default.moveItem(atPath: path + "/gone", toPath: path + "/d")
    #expect(try server.request("GET", "/readyz").status == 200)
  }
}
