import DocumentModel
import Testing

@testable import Watch

/// The Listen stream of a client as transcripts; see ``StreamTranscript`` for the lines.
@Suite struct WatchStreamTests {
  @Test func aTargetIsAuthorizedThenJoinedThenCaughtUp() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = paused
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      """)
  }

  @Test func changesFollowInOrderAndASnapshotEndsTheBatch() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      > add 2 documents c/x
      ! authorize 2
      = allow 2
      ! join 2 c/x
      < ADD 2
      @ joined 5: 1
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      @ joined 5: 2
      ? catch up 2 to 5
      = done
      < CURRENT 2 at 5
      < NO_CHANGE at 5
      @ batch 6: 1 +c/x -c/y /c/z 2 ~c/x
      ? modified c/x in 1
      ? removed, with its state: c/y in 1
      ? removed c/z in 1
      ? deleted c/x in 2, if allowed
      = allow c/x@0 in 2
      < NO_CHANGE at 6
      @ no change 9
      < NO_CHANGE at 9
      """)
  }

  @Test func aDeniedTargetEndsAndTheStreamContinues() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = deny 1
      < ADD 1
      < REMOVE 1: denied
      > add 1 query d
      ! authorize 2
      = allow 2
      ! join 2 d
      < ADD 1
      @ joined 5: 2
      ? catch up 2 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      """)
  }

  @Test func aTargetThatCannotBeDecodedEnds() throws {
    try expect(
      """
      > bad 7
      < REMOVE 7: not a target
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      """)
  }

  @Test func aTokenResumesAndAnUnknownTokenResets() throws {
    try expect(
      """
      > add 1 query c from 3 count 2
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 from 3 to 5, 2 documents
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      > add 2 query c foreign
      ! authorize 2
      = allow 2
      ! join 2 c
      < ADD 2
      @ joined 6: 2
      < RESET 2
      ? catch up 2 to 6
      = done
      < CURRENT 2 at 6
      < NO_CHANGE at 6
      > add 3 query c from 9
      ! authorize 3
      = allow 3
      ! join 3 c
      < ADD 3
      @ joined 7: 3
      < RESET 3
      ? catch up 3 to 7
      = reset
      < RESET 3
      ? catch up 3 to 7
      = done
      < CURRENT 3 at 7
      < NO_CHANGE at 7
      """)
  }

  @Test func aTargetWhoseChangesAreUnknownStartsOverAndSnapshotsWait() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      > add 2 query d
      ! authorize 2
      = allow 2
      ! join 2 d
      < ADD 2
      @ joined 5: 1 2
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      ? catch up 2 to 5
      = done
      < CURRENT 2 at 5
      < NO_CHANGE at 5
      @ batch 6: 1 ? 2 +d/x
      ! refresh 1
      ? modified d/x in 2
      @ no change 7
      @ joined 8: 1
      < RESET 1
      ? catch up 1 to 8
      = done
      < CURRENT 1 at 8
      < NO_CHANGE at 8
      """)
  }

  @Test func aLaggingListenerRejoinsAndCatchesUpFromItsVersion() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      > add 2 query d
      ! authorize 2
      = allow 2
      ! join 2 d
      < ADD 2
      @ joined 5: 1 2
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      ? catch up 2 to 5
      = done
      < CURRENT 2 at 5
      < NO_CHANGE at 5
      @ no change 7
      < NO_CHANGE at 7
      @ lagged
      ! rejoin
      @ joined 9: 1 2
      ? catch up 1 from 7 to 9
      = done
      ? catch up 2 from 7 to 9
      = reset
      < RESET 2
      ? catch up 2 from 7 to 9
      = done
      < CURRENT 2 at 9
      < NO_CHANGE at 9
      """)
  }

  @Test func aTargetThatTakesTooLongStartsOver() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = paused
      ? catch up 1 to 5
      = too old
      ! refresh 1
      < NO_CHANGE at 5
      @ joined 9: 1
      < RESET 1
      ? catch up 1 to 9
      = done
      < CURRENT 1 at 9
      < NO_CHANGE at 9
      """)
  }

  @Test func aBrokenCatchUpEndsItsTarget() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = broken
      ! leave 1
      < REMOVE 1: broken
      < NO_CHANGE at 5
      > add 2 query d
      ! authorize 2
      = allow 2
      ! join 2 d
      < ADD 2
      @ unreadable 2
      ! leave 2
      < REMOVE 2: unreadable
      """)
  }

  @Test func aOneTimeTargetEndsAfterItsSnapshot() throws {
    try expect(
      """
      > add 1 query c once
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = done
      ! leave 1
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      < REMOVE 1
      """)
  }

  @Test func aRemovedTargetGetsNothingMore() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      > remove 1
      ! leave 1
      < REMOVE 1
      < NO_CHANGE at 5
      = done
      @ batch 6: 1 +c/x
      < NO_CHANGE at 6
      > remove 1
      """)
  }

  @Test func theServerNumbersTargetsOnRequest() throws {
    try expect(
      """
      > add 0 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      > add 0 query d
      ! authorize 2
      = allow 2
      ! join 2 d
      < ADD 2
      > add 5 query e
      < REMOVE 5: The server assigns the target ids of this stream, because one was 0; 5 is not allowed.
      """)
  }

  @Test func aUsedNumberEndsTheStream() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1
      ! join 1 c
      < ADD 1
      > add 1 query d
      END Target id already in use: 1
      > add -1 query d
      END A target id must not be negative: -1
      """)
  }

  @Test func aChangedDependencyIsAuthorizedBeforeTheWaitingChanges() throws {
    try expect(
      """
      > add 1 query c
      ! authorize 1
      = allow 1 by m/ann
      ! join 1 c
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      @ reauthorize 1
      ! authorize 1
      = allow 1 by m/ann
      ! guard 1 m/ann
      @ reauthorize 1
      ! authorize 1
      = deny 1
      ! leave 1
      < REMOVE 1: denied
      @ batch 6: 1 +c/x
      < NO_CHANGE at 6
      """)
  }

  @Test func aDecisionThatDependsOnTheTimeIsRepeated() throws {
    try expect(
      """
      at 1
      > add 1 query c
      ! authorize 1
      = allow 1 by time
      ! join 1 c
      < ADD 1
      at 2
      @ joined 5: 1
      ! authorize 1
      = allow 1 by time
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      at 20
      @ batch 6: 1 +c/x +c/y
      ! authorize 1
      = allow 1 by time
      ? modified c/x in 1
      ? modified c/y in 1
      < NO_CHANGE at 6
      at 44
      at 45
      ! authorize 1
      = allow 1 by time
      """)
  }

  @Test func documentsAreAuthorizedInEachNewState() throws {
    try expect(
      """
      > add 1 documents c/x
      ! authorize 1
      = allow 1
      ! join 1 c/x
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      @ batch 6: 1 +c/x
      ? modified c/x in 1, if allowed
      = allow c/x@6 in 1
      < NO_CHANGE at 6
      @ batch 7: 1 +c/x
      ? modified c/x in 1, if allowed
      = allow c/x@7 in 1 by m/ann
      ! authorize 1
      = allow 1 by m/ann
      ! guard 1 m/ann
      < NO_CHANGE at 7
      @ batch 8: 1 ~c/x
      ? deleted c/x in 1, if allowed
      = deny 1
      ! leave 1
      < REMOVE 1: denied
      < NO_CHANGE at 8
      """)
  }

  @Test func withoutRulesNothingIsAuthorizedAgain() throws {
    try expect(
      isRestricted: false,
      """
      > add 1 documents c/x
      ! authorize 1
      = allow 1
      ! join 1 c/x
      < ADD 1
      @ joined 5: 1
      ? catch up 1 to 5
      = done
      < CURRENT 1 at 5
      < NO_CHANGE at 5
      @ batch 6: 1 +c/x
      ? modified c/x in 1
      < NO_CHANGE at 6
      """)
  }

  /// The operands of all queries of a stream are limited. Removing a target makes room.
  @Test func theOperandsOfAllQueriesAreLimited() throws {
    let database = try #require(DatabaseID(project: "p"))
    var stream = WatchStream(in: database, .standard, isRestricted: false)
    func add(_ id: Int32) throws -> [String] {
      var query = Query(collectionID: "c")
      query.filter = .field(
        try FieldPath("a"), .equal, .string(String(repeating: "x", count: WatchStream.operandBytesMax / 2 - 100)))
      try stream.receive(.add(ListenTarget(id: id, .query(query))))
      stream.authorized(Int(id), AuthorizationDependencies(), versions: [:])
      var events: [String] = []
      while let action = stream.nextAction() {
        if case .request(.join) = action { events.append("join") }
      }
      while case .send(let event)? = stream.nextStep() {
        if case .remove(_, let cause?) = event { events.append("\(cause)".prefix(17).description) }
      }
      return events
    }
    #expect(try add(1) == ["join"])
    #expect(try add(2) == ["join"])
    #expect(try add(3) == ["resourceExhausted"])
    try stream.receive(.remove(1))
    #expect(try add(4) == ["join"])
  }

  /// A client that only sends requests is stopped.
  @Test func waitingRefusalsAndEventsAreLimited() throws {
    let database = try #require(DatabaseID(project: "p"))
    var stream = WatchStream(in: database, .standard, isRestricted: false)
    let cause = WatchError.invalidArgument("no target")
    for id in 1...WatchStream.refusalsMax { try stream.refuse(Int32(id), because: cause) }
    #expect(throws: WatchError.self) { try stream.refuse(1, because: cause) }
    let bad = ListenTarget(id: 1, .documents([ResourcePath.root]))
    for _ in 0..<5000 { try stream.receive(.add(bad)) }
    #expect(throws: WatchError.self) { try stream.receive(.add(bad)) }
    while case .send? = stream.nextStep() {}
    try stream.receive(.add(bad))
  }

  private func expect(isRestricted: Bool = true, _ text: String) throws {
    #expect(try StreamTranscript.run(text, isRestricted: isRestricted) == text)
  }
}
