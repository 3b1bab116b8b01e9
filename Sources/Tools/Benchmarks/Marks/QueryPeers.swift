import Foundation

extension Benchmark {
  static let queryPeers = Benchmark(
    name: "query-peers",
    summary: "a query and a whole collection over HTTP, compared with PocketBase and the emulator",
    meaning: """
      An equality filter on one field, an order by another, and 20 of about 5,000 matches: POST of a runQuery over 16
      connections. Hearth and PocketBase have an index on both fields; the emulator needs no index. The second row
      is the same query of a collection without that index. The stream is a query for a whole collection over one
      connection, as compact JSON.
      """
  ) {
    var table = ResultTable("server", "work", "requests/s", "CPU µs/request", "Hearth against it", "mark")
    let indexFile = "\(try Run.makeDirectory("query-peers"))/indexes.json"
    try FirestoreFilling.indexes.write(toFile: indexFile, atomically: false, encoding: .utf8)
    let hearth = try HearthPeer(["--indexes", indexFile])
    defer { hearth.process.stop() }
    for collection in ["many", "plain"] { _ = try hearth.storeMany(10_000, into: collection) }
    _ = try hearth.storeMany(5_000, into: "stream")

    func load(_ server: any PeerServer, _ target: String, _ body: String?, connections: Int = 16, warmUp: Int = 2)
      throws -> Load
    {
      Run.progress("query-peers: \(type(of: server).name)")
      let script = body.map {
        "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = [[\($0)]]"
      }
      return try Load.run(on: server, target, connections: connections, script: script, warmUpSeconds: warmUp)
    }
    let runQuery = "\(FirestoreFilling.documents):runQuery?prettyPrint=false"
    let query = try load(hearth, runQuery, FirestoreFilling.query)
    let plain = try load(
      hearth, runQuery, FirestoreFilling.query.replacing("\"many\"", with: "\"plain\""))
    func add(_ name: String, _ work: String, _ load: Load, _ mark: String, against hearth: Load? = nil) {
      table.add(
        name, work, Format.count(load.requestsPerSecond), Format.tenths(load.cpuMicrosecondsPerRequest),
        hearth.map { Format.ratio($0.requestsPerSecond, to: load.requestsPerSecond) } ?? "", mark)
    }
    add("Hearth", "query, 20 of 10,000", query, "")
    add("Hearth", "the same, automatic indexes only", plain, "")
    let stream = try load(
      hearth, runQuery, #"{"structuredQuery": {"from": [{"collectionId": "stream"}]}}"#, connections: 1)
    add("Hearth", "stream, 5,000", stream, "")
    let rate = stream.bytesWritten / stream.requests * stream.requestsPerSecond / 1e6
    table.notes.append("the stream comes to \(Format.count(rate)) MB/s of JSON; the mark is 200 MB/s")
    hearth.process.stop()

    if let obstacle = PocketBasePeer.obstacle {
      table.notes.append("PocketBase skipped: \(obstacle)")
    } else {
      let pocketBase = try PocketBasePeer()
      defer { pocketBase.process.stop() }
      try pocketBase.storeMany(10_000)
      let target = "/api/collections/tasks/records?filter=(done=true)&sort=-count&perPage=20&skipTotal=1"
      add("PocketBase", "query, 20 of 10,000", try load(pocketBase, target, nil), "≥ 8 ×", against: query)
    }
    if let obstacle = EmulatorPeer.obstacle {
      table.notes.append("official emulator skipped: \(obstacle)")
    } else {
      let emulator = try EmulatorPeer()
      defer { emulator.process.stop() }
      try FirestoreFilling.store(10_000, into: "many", port: emulator.port)
      let slow = try load(emulator, runQuery, FirestoreFilling.query, connections: 2, warmUp: 10)
      add("official emulator", "query, 20 of 10,000", slow, "≥ 1,000 ×", against: query)
    }
    return table
  }
}

/// Fills a server with Firestore's REST API, and builds the query that all peers run.
enum FirestoreFilling {
  static let documents = "/v1/projects/bench/databases/(default)/documents"
  static let query = """
    {"structuredQuery": {"from": [{"collectionId": "many"}], "limit": 20, \
    "where": {"fieldFilter": {"field": {"fieldPath": "done"}, "op": "EQUAL", "value": {"booleanValue": true}}}, \
    "orderBy": [{"field": {"fieldPath": "count"}, "direction": "DESCENDING"}]}}
    """

  /// The index of both fields of the query, for the collection `many` alone.
  static let indexes = """
    {"indexes": [{"collectionGroup": "many", "queryScope": "COLLECTION", "fields": [\
    {"fieldPath": "done", "order": "ASCENDING"}, {"fieldPath": "count", "order": "DESCENDING"}]}]}
    """

  /// Stores documents of five fields with different values, in commits of 500.
  static func store(_ count: Int, into collection: String, port: Int) throws {
    let perCommit = 500
    for start in stride(from: 0, to: count, by: perCommit) {
      let writes = (start..<min(start + perCommit, count)).map { number in
        """
        {"update": {"name": "\(documents.dropFirst("/v1/".count))/\(collection)/m\(number)", "fields": {\
        "title": {"stringValue": "Buy oat milk and bread"}, "done": {"booleanValue": \(number.isMultiple(of: 2))}, \
        "count": {"integerValue": "\(number * 7919 % 10_007)"}, "score": {"doubleValue": 3.75}, \
        "createdAt": {"timestampValue": "2025-03-27T14:30:00.123456Z"}}}}
        """
      }
      let reply = try LoadClient.send(
        "POST", port: port, "\(documents):commit", body: "{\"writes\": [\(writes.joined(separator: ","))]}")
      guard reply.status == 200 else { throw BenchmarkError("a commit was refused: \(reply.body)") }
    }
  }
}
