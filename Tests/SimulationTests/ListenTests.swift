import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import Testing
import TestSupport
import Watch

/// The events of a Listen stream, one by one.
@Suite struct ListenTests {
  private let service: SimulatedService
  private let client: ListeningClient

  init() throws {
    service = try SimulatedService()
    client = try ListeningClient(service)
  }

  private static func query(_ collection: String = "c", limit: Int? = nil, by orders: Order...)
    -> ListenTarget.Selection
  {
    var query = Query(collectionID: collection)
    query.limit = limit
    query.orders = orders
    return .query(query)
  }

  private func expect(_ events: String..., sourceLocation: SourceLocation = #_sourceLocation) throws {
    try client.settle()
    #expect(client.takeEvents() == events, sourceLocation: sourceLocation)
  }

  @Test func aQueryTargetReportsChanges() throws {
    try service.commit([.set("c/x", ("a", 1)), .set("c/y", ("a", 2)), .set("d/z")])
    try client.add(2, Self.query())
    try expect("ADD 2", "c/x +2", "c/y +2", "CURRENT 2", "SNAPSHOT")
    try service.commit([.set("c/x", ("a", 2)), .delete("c/y"), .set("c/z"), .set("d/z", ("a", 1))])
    try expect("c/x +2", "DELETE c/y 2", "c/z +2", "SNAPSHOT")
    try service.commit([.set("d/z", ("a", 2))])
    try expect()
    try client.remove(2)
    // The hub drops the target before the next commit. Otherwise its thread may still report the commit to the stream,
    // which then sends a snapshot without targets.
    try expect("REMOVE 2")
    try service.commit([.set("c/x", ("a", 3))])
    try expect()
    try client.remove(2)
    try expect()
  }

  @Test func documentTargetsReportMissingDocuments() throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(1, .documents([document("c/x").path, document("c/y").path, document("c/x").path]))
    try expect("ADD 1", "c/x +1", "DELETE c/y 1", "CURRENT 1", "SNAPSHOT")
    try service.commit([.set("c/y"), .set("c/z")])
    try expect("c/y +1", "SNAPSHOT")
    try service.commit([.delete("c/x")])
    try expect("DELETE c/x 1", "SNAPSHOT")
  }

  @Test func aSnapshotHasTheWholeCommitForAllTargets() throws {
    try service.commit([.set("c/x", ("a", 1)), .set("d/x", ("a", 1))])
    try client.add(2, Self.query("c"))
    try client.add(4, Self.query("d"))
    try client.settle()
    _ = client.takeEvents()
    try service.commit([.set("c/x", ("a", 2)), .set("d/x", ("a", 2))])
    try client.settle()
    #expect(client.takeEvents().sorted() == ["SNAPSHOT", "c/x +2", "d/x +4"])
  }

  @Test func aLimitMovesDocumentsInAndOut() throws {
    for index in 0..<30 { try service.commit([.set("c/d\(index + 10)", ("n", .integer(Int64(index))))]) }
    try client.add(2, Self.query(limit: 2, by: Order(field("n"))))
    try expect("ADD 2", "c/d10 +2", "c/d11 +2", "CURRENT 2", "SNAPSHOT")
    try service.commit([.delete("c/d10")])
    try expect("DELETE c/d10 2", "c/d12 +2", "SNAPSHOT")
    try service.commit([.set("c/new", ("n", -1))])
    try expect("LEAVE c/d12 2", "c/new +2", "SNAPSHOT")
    try service.commit([.set("c/new", ("m", -1))])
    try expect("c/new -2", "c/d12 +2", "SNAPSHOT")
    try service.commit([.set("c/d20", ("n", 100))])
    try expect()
    // Delete more documents than the slack, so that the query must run again.
    for index in 1..<15 { try service.commit([.delete("c/d\(index + 10)")]) }
    try client.settle()
    _ = client.takeEvents()
    #expect(client.states[2]?.documents.keys.sorted().map(\.text) == ["c/d25", "c/d26"])
  }

  @Test func aTokenResumesWithOnlyTheChanges() throws {
    try service.commit([.set("c/x", ("a", 1)), .set("c/y", ("a", 1)), .set("c/z", ("a", 1))])
    try client.add(2, Self.query())
    try client.settle()
    _ = client.takeEvents()
    let token = try #require(client.snapshot?.token)
    try client.remove(2)
    try client.settle()
    _ = client.takeEvents()
    try client.add(2, Self.query(), from: token)
    try expect("ADD 2", "CURRENT 2", "SNAPSHOT")
    try client.remove(2)
    try service.commit([.set("c/y", ("a", 2)), .delete("c/z"), .set("c/new")])
    try service.commit([.delete("c/new")])
    try client.settle()
    _ = client.takeEvents()
    try client.add(2, Self.query(), from: token)
    try expect("ADD 2", "c/y +2", "DELETE c/z 2", "CURRENT 2", "SNAPSHOT")
  }

  /// A token denotes a snapshot. A client discards the events that follow it without another snapshot, so a document
  /// that left the limit and returned must not be reported.
  @Test func aLimitResumesFromItsLastSnapshotAfterHalfACommit() throws {
    try service.commit([.set("c/d1", ("n", 1)), .set("c/d2", ("n", 2)), .set("c/d3", ("n", 3))])
    let selection = Self.query(limit: 2, by: Order(field("n")))
    try client.add(2, selection)
    try expect("ADD 2", "c/d1 +2", "c/d2 +2", "CURRENT 2", "SNAPSHOT")
    try service.commit([.set("c/d0", ("n", 0))])
    service.settleWatchHubs()
    try client.pull(eventsMax: 1)
    #expect(client.takeEvents() == ["LEAVE c/d2 2"])
    client.stream.end()
    try service.commit([.delete("c/d1")])

    let resumed = try ListeningClient(service)
    resumed.expect(try #require(client.atSnapshot?[2]?.documents), of: 2)
    try resumed.add(2, selection, from: try #require(client.snapshot?.token))
    try resumed.settle()
    #expect(resumed.takeEvents() == ["ADD 2", "DELETE c/d1 2", "c/d0 +2", "CURRENT 2", "SNAPSHOT"])
    #expect(resumed.states[2]?.documents.keys.sorted().map(\.text) == ["c/d0", "c/d2"])
  }

  @Test(arguments: [[1, 2, 3], Array(repeating: 7, count: 21), ResumeToken(incarnation: 1, version: 5).bytes])
  func anUnknownTokenResetsTheTarget(_ token: [UInt8]) throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(2, Self.query(), from: token)
    try expect("ADD 2", "RESET 2", "c/x +2", "CURRENT 2", "SNAPSHOT")
  }

  @Test func clearingResetsAllTargets() throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(2, Self.query())
    try client.add(3, .documents([document("c/x").path]))
    try client.settle()
    _ = client.takeEvents()
    let token = try #require(client.snapshot?.token)
    try wait { done in try service.service.clear(service.id) { done($0) } }.get()
    try expect("RESET 2", "CURRENT 2", "DELETE c/x 3", "SNAPSHOT")
    try client.add(4, Self.query(), from: token)
    try expect("ADD 4", "RESET 4", "CURRENT 4", "SNAPSHOT")
  }

  @Test func anInvalidTargetDoesNotEndTheStream() throws {
    try service.commit([.set("c/x", ("a", 1))])
    var nearest = Query(collectionID: "c")
    nearest.limit = -1
    try client.add(2, .query(nearest))
    try client.add(4, Self.query())
    try expect("ADD 2", "REMOVE 2 invalidArgument", "ADD 4", "c/x +4", "CURRENT 4", "SNAPSHOT")
    #expect(throws: Status.self) { try client.add(4, Self.query()) }
    #expect(throws: Status.self) { try client.add(-4, Self.query()) }
  }

  @Test func theServerAssignsTargetIDsOnRequest() throws {
    try client.add(0, Self.query())
    try client.add(0, Self.query("d"))
    try client.add(5, Self.query())
    try client.settle()
    #expect(
      client.takeEvents().filter { $0.hasPrefix("ADD") || $0.hasPrefix("REMOVE") } == [
        "ADD 1", "ADD 2", "REMOVE 5 invalidArgument",
      ])
  }

  @Test func aOneTimeTargetEndsWhenCurrent() throws {
    try service.commit([.set("c/x", ("a", 1))])
    var target = ListenTarget(id: 2, Self.query())
    target.endsWhenCurrent = true
    try client.add(target)
    try expect("ADD 2", "c/x +2", "CURRENT 2", "SNAPSHOT", "REMOVE 2")
  }

  @Test func aSlowClientIsCaughtUp() throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(2, Self.query())
    try client.settle()
    _ = client.takeEvents()
    for index in 0..<600 {
      let number = Value.integer(Int64(index))
      try service.commit([.set("c/x", ("a", number)), .set("c/y\(index % 7)", ("n", number))])
      service.settleWatchHubs()
    }
    try client.settle()
    let events = client.takeEvents()
    #expect(events.count == 9 && events.last == "SNAPSHOT", "\(events)")
    #expect(client.states[2]?.documents.count == 8)
  }

  @Test func tooManyTargetsAreRefused() throws {
    for id in 1...Int32(WatchStream.targetsMax + 1) { try client.add(id, .documents([document("c/x").path])) }
    try client.settle()
    #expect(client.causes.values.map(\.code) == [.resourceExhausted])
  }

  @Test func largeQueriesAreBounded() throws {
    let large = String(repeating: "x", count: 1 << 20)
    func query(_ number: Int64) -> ListenTarget.Selection {
      var query = Query(collectionID: "c")
      query.filter = .and([
        .field(field("a"), .equal, .string(large)), .field(field("n"), .equal, .integer(number)),
      ])
      return .query(query)
    }
    for id in 1...5 { try client.add(Int32(id), query(Int64(id))) }
    try client.settle()
    #expect(client.causes.mapValues(\.code) == [4: .resourceExhausted, 5: .resourceExhausted])
    try client.remove(1)
    try client.add(6, query(6))
    try client.settle()
    #expect(client.causes[6] == nil)
  }

  @Test func listenersAreDescribed() throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(2, Self.query(limit: 3, by: Order(field("a"), isDescending: true)))
    try client.add(4, .documents([document("c/x").path]))
    try client.settle()
    let found = try wait { done in
      try service.service.listeners(as: service.service.administrator(.admin), completion: done)
    }
    #expect(found.map(\.targets) == [["c order by a desc limit 3", "c/x"]])
    #expect(found.map(\.name) == ["admin"])
    #expect(found.map(\.lag) == [0])
    try service.commit([.set("c/x", ("a", 2))])
    service.settleWatchHubs()
    let after = try wait { done in
      try service.service.listeners(as: service.service.administrator(.admin), completion: done)
    }
    #expect(after.allSatisfy { $0.lag > 0 && $0.queuedBytes > 0 })
  }

  @Test func idleStreamsGetSnapshots() throws {
    try service.commit([.set("c/x", ("a", 1))])
    try client.add(2, Self.query())
    try client.settle()
    _ = client.takeEvents()
    for hub in service.service.hubs.all { for _ in 0..<8 { hub.beat() } }
    service.settleWatchHubs()
    #expect(client.wakes.take())
    try expect("SNAPSHOT")
  }

  @Test func aWrongExpectedCountResetsTheTarget() throws {
    try service.commit([.set("c/x", ("a", 1)), .set("c/y", ("a", 1)), .set("c/z", ("a", 1))])
    try client.add(2, Self.query())
    try client.settle()
    let token = try #require(client.snapshot?.token)
    try service.commit([.delete("c/x"), .set("c/new", ("a", 1)), .set("c/newer", ("a", 1))])
    try client.settle()
    try client.remove(2)
    for (count, isReset) in [(3, false), (2, true), (4, true)] {
      var target = ListenTarget(id: 2, Self.query(), resumePoint: .token(token))
      target.expectedCount = count
      try client.settle()
      _ = client.takeEvents()
      try client.add(target)
      try client.settle()
      #expect(client.takeEvents().contains("RESET 2") == isReset)
      try client.remove(2)
    }
  }

  @Test func aDatabaseWithListenersStaysOpen() throws {
    let time = SteppedTime()
    let registry = DatabaseRegistry(clock: Clock { time.now }, idleSeconds: 10) { (_) throws(StorageError) in
      try LMDBStore.open(.inMemory(mapBytes: 1 << 24))
    }
    let service = FirestoreService(databases: registry, mode: .emulator)
    let stream = try ListenStream(service, in: self.service.id, as: .admin) {}
    time.advance(seconds: 100)
    registry.maintain()
    #expect(registry.openDatabases.count == 1)
    try stream.receive(.add(ListenTarget(id: 2, Self.query())))
    for hub in service.hubs.all { hub.settle() }
    stream.end()
    #expect(service.hubs.all.isEmpty)
  }

  @Test func projectionsLimitTheReportedFields() throws {
    try service.commit([.set("c/x", ("a", 1), ("b", 1)), .set("c/y", ("a", 1), ("b", 1))])
    var query = Query(collectionID: "c")
    query.projection = mask("a")
    try client.add(2, .query(query))
    try client.settle()
    try service.commit([.set("c/x", ("a", 2), ("b", 2))])
    try client.settle()
    #expect(client.fields == ["c/x": fields(("a", 2)), "c/y": fields(("a", 1))])
  }
}
