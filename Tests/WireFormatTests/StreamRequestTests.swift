import DocumentModel
import Testing

@testable import WireFormat

/// Tests requests on the Listen and Write streams, from JSON and from protobuf.
@Suite struct StreamRequestTests {
  private static let root = "projects/p/databases/(default)/documents"

  private static func database() throws -> DatabaseID { try #require(DatabaseID(project: "p")) }

  private static func fromJSON<R>(
    _ text: String, _ body: (JSONMessageDecoder, JSONValue, DatabaseID) throws(WireError) -> R
  ) throws -> Result<R, WireError> {
    let database = try database()
    return Result { () throws(WireError) in
      try decoding(text) { (decoder, root) throws(WireError) in try body(decoder, root, database) }
    }
  }

  private static func fromBytes<R>(
    _ hex: String, _ body: (ProtobufMessageDecoder, UnsafeRawBufferPointer, DatabaseID) throws(WireError) -> R
  ) throws -> Result<R, WireError> {
    let database = try database()
    return ProtobufMessageTests.bytes(hex).withUnsafeBytes { bytes in
      Result { () throws(WireError) in try body(ProtobufMessageDecoder(), bytes, database) }
    }
  }

  private static func listen(_ text: String) throws -> DecodedListenRequest {
    try fromJSON(text) { (d, json, database) throws(WireError) in try d.listenRequest(json, in: database) }.get()
  }

  @Test(arguments: GoldenStreamRequests.listen) func decodesListenRequestsTheSame(row: GoldenStreamRequests.Row)
    throws
  {
    let one = try Self.fromBytes(row.hex) { (d, bytes, database) throws(WireError) in
      try d.listenRequest(bytes, in: database)
    }
    let other = try Self.fromJSON(row.json) { (d, json, database) throws(WireError) in
      try d.listenRequest(json, in: database)
    }
    #expect(one == other, "\(row.json)")
  }

  @Test(arguments: GoldenStreamRequests.write) func decodesWriteRequestsTheSame(row: GoldenStreamRequests.Row)
    throws
  {
    let one = try Self.fromBytes(row.hex) { (d, bytes, database) throws(WireError) in
      try d.writeStreamRequest(bytes, in: database)
    }
    let other = try Self.fromJSON(row.json) { (d, json, database) throws(WireError) in
      try d.writeStreamRequest(json, in: database)
    }
    #expect(one == other, "\(row.json)")
  }

  @Test(arguments: GoldenStreamRequests.listen + GoldenStreamRequests.write)
  func findsTheDatabaseOfARequest(row: GoldenStreamRequests.Row) throws {
    let expected = row.json.contains(#""database""#) ? try Self.database() : nil
    #expect(
      try Self.fromBytes(row.hex) { (_, m, _) throws(WireError) in try ProtobufMessageDecoder.streamDatabase(m) }
        == .success(expected))
    #expect(
      try Self.fromJSON(row.json) { (d, json, _) throws(WireError) in try d.streamDatabase(json) } == .success(expected)
    )
  }

  /// The web SDK sends the parent after the query, and numbers as JSON numbers (listen-and-webchannel.md, section
  /// 6).
  @Test func decodesAQueryOfTheWebSDK() throws {
    let request = try Self.listen(
      #"""
      {"database":"projects/p/databases/(default)","addTarget":{"query":{"structuredQuery":{"from":[{"collectionId":"items"}],
      "orderBy":[{"field":{"fieldPath":"__name__"},"direction":"ASCENDING"}]},"parent":"\#(Self.root)/open/1"},"targetId":2,
      "resumeToken":"-_8A","expectedCount":{"value":15}},"labels":{"goog-listen-tags":"existence-filter-mismatch"}}
      """#)
    var query = Query(parent: try ResourcePath("open/1"), collectionID: "items")
    query.orders = [DocumentModel.Order(FieldPath(field: "__name__"))]
    var target = ListenTarget(id: 2, .query(query), resumePoint: .token([0xFB, 0xFF, 0]))
    target.expectedCount = 15
    #expect(request == .accepted(.add(target)))
  }

  @Test func removesRepeatedDocuments() throws {
    let request = try Self.listen(
      #"{"addTarget":{"targetId":1,"once":true,"documents":{"documents":["\#(Self.root)/a/c","\#(Self.root)/a/b","\#(Self.root)/a/c"]}}}"#
    )
    var target = ListenTarget(id: 1, .documents([try ResourcePath("a/c"), try ResourcePath("a/b")]))
    target.endsWhenCurrent = true
    #expect(request == .accepted(.add(target)))
    #expect(try Self.listen(#"{"removeTarget":"-3"}"#) == .accepted(.remove(-3)))
  }

  /// Both base64 alphabets give the same token. An empty token means that the target does not resume.
  @Test func decodesResumeTokens() throws {
    func token(_ text: String) throws -> ListenTarget.ResumePoint? {
      let request = try Self.listen(
        #"{"addTarget":{"targetId":1,"documents":{"documents":["\#(Self.root)/a/b"]},"resumeToken":"\#(text)"}}"#)
      guard case .accepted(.add(let target)) = request else { return nil }
      return target.resumePoint
    }
    #expect(try token("+/8A") == .token([0xFB, 0xFF, 0]))
    #expect(try token("-_8A") == .token([0xFB, 0xFF, 0]))
    #expect(try token("+w==") == .token([0xFB]))
    #expect(try token("+w") == .token([0xFB]))
    #expect(try token("") == nil)
  }

  /// Named queries of bundles have nanoseconds. The official emulator truncates them too.
  @Test func truncatesTheReadTimeOfATarget() throws {
    var target = ListenTarget(id: 1, .documents([try ResourcePath("a/b")]))
    target.resumePoint = .readTime(Timestamp(uncheckedMicroseconds: 1_000_000_009))
    let request = try Self.listen(
      #"{"addTarget":{"targetId":1,"documents":{"documents":["\#(Self.root)/a/b"]},"#
        + #""readTime":"1970-01-01T00:16:40.000009999Z"}}"#)
    #expect(request == .accepted(.add(target)))
  }

  /// An error in a target ends that target only.
  @Test(arguments: [
    (
      #""documents":{"documents":["projects/p/databases/x/documents/a/b"]}"#,
      "The request was for database 'projects/p/databases/(default)' but was attempting to access database 'projects/p/databases/x'"
    ),
    (#""documents":{"documents":["a/b"]}"#, #"Document name "a/b" lacks "projects" at index 0."#),
    (#""documents":{}"#, "A target must have a structured query, or name documents."),
    (#""query":{"parent":"ROOT"}"#, "A target must have a structured query, or name documents."),
    (#""query":{"structuredQuery":{}}"#, #"Document parent name "" lacks "projects" at index 0."#),
    (#""query":{"parent":"ROOT","structuredQuery":{"where":{}}}"#, "A filter must have a filter_type."),
    (
      #""query":{"parent":"ROOT","structuredQuery":{"limit":"x"}}"#,
      #"Invalid value at 'add_target.query.structured_query.limit' (TYPE_INT32), "x""#
    ),
    (
      #""query":{"parent":"ROOT","structuredQuery":{"form":[]}}"#,
      #"Invalid JSON payload received. Unknown name "form" at 'add_target.query.structured_query': Cannot find field."#
    ),
    (
      #""resumeToken":"!""#, #"Invalid value at 'add_target.resume_token' (TYPE_BYTES), Base64 decoding failed for "!""#
    ),
    (
      #""resumeToken":"AA==","readTime":"2025-03-27T14:30:00Z""#,
      "Invalid value at 'add_target' (oneof), oneof field 'resume_type' is already set. Cannot set 'readTime'"
    ),
    (
      #""readTime":"yesterday""#,
      #"Invalid value at 'add_target.read_time' (type.googleapis.com/google.protobuf.Timestamp), "yesterday""#
    ),
  ])
  func refusesInvalidTargets(members: String, text: String) throws {
    let members = members.replacing("ROOT", with: Self.root)
    let request = try Self.listen(#"{"addTarget":{\#(members),"targetId":6}}"#)
    guard case .refused(6, let error) = request else {
      Issue.record("\(request)")
      return
    }
    #expect(error.description == text)
    // A target without a number cannot end by itself, so the error ends the stream.
    #expect(throws: error) { try Self.listen(#"{"addTarget":{\#(members)}}"#) }
  }

  @Test func decodesPipelines() throws {
    let empty = ListenTarget(id: 8, .documents([]))
    #expect(
      try Self.listen(
        #"{"addTarget":{"pipelineQuery":{"structuredPipeline":{"pipeline":{"stages":[{"name":"database"}]}}},"targetId":8}}"#
      ) == .pipeline(empty, StructuredPipeline([PipelineCall("database")])))
    // add_target {pipeline_query {structured_pipeline {}} target_id 8}
    let bytes = try Self.fromBytes("12066a020a002808") { (d, m, database) throws(WireError) in
      try d.listenRequest(m, in: database)
    }
    #expect(bytes == .success(.pipeline(empty, StructuredPipeline([]))))
    // add_target {pipeline_query {} target_id 8}
    let without = try Self.fromBytes("12046a002808") { (d, m, database) throws(WireError) in
      try d.listenRequest(m, in: database)
    }
    #expect(without == .success(.refused(target: 8, .model(.pipelineNotStructured))))
  }

  @Test(arguments: [
    ("{}", "The request neither adds nor removes a target."),
    ("[]", "Invalid JSON payload received. Invalid value at '': Proto field is not repeating, cannot start list."),
    (
      #"{"addTarget":[]}"#,
      "Invalid JSON payload received. Invalid value at 'add_target': Proto field is not repeating, cannot start list."
    ),
    (#"{"addTarget":{"targetId":2147483648}}"#, "Invalid value at 'add_target.target_id' (TYPE_INT32), 2147483648"),
    (
      #"{"addTarget":{"targetId":1,"documents":{}},"removeTarget":2}"#,
      "Invalid value at '' (oneof), oneof field 'target_change' is already set. Cannot set 'removeTarget'"
    ),
    (#"{"dropTarget":2}"#, #"Invalid JSON payload received. Unknown name "dropTarget": Cannot find field."#),
  ])
  func invalidRequestsEndTheStream(request: String, text: String) throws {
    let result = try Self.fromJSON(request) { (d, json, database) throws(WireError) in
      try d.listenRequest(json, in: database)
    }
    #expect(message { () throws(WireError) in try result.get() } == text)
  }

  @Test func decodesWriteRequestsOfTheWebSDK() throws {
    let request = try Self.fromJSON(
      #"{"streamToken":"MA==","writes":[{"update":{"name":"\#(Self.root)/c/d","fields":{"n":{"integerValue":"1"}}},"updateMask":{"fieldPaths":[]}}]}"#
    ) { (d, json, database) throws(WireError) in try d.writeStreamRequest(json, in: database) }.get()
    #expect(request.streamToken == Array("0".utf8) && request.streamID.isEmpty)
    #expect(request.writes.map(\.key.path.text) == ["c/d"])
    let bad = try Self.fromJSON(#"{"writes":[{"delete":"\#(Self.root)/c/d"},{"delete":"x"}]}"#) {
      (d, json, database) throws(WireError) in try d.writeStreamRequest(json, in: database)
    }
    #expect(message { () throws(WireError) in try bad.get() } == #"Document name "x" lacks "projects" at index 0."#)
  }

  @Test func checksDatabaseNames() throws {
    for (text, isGood) in [
      (#"{"database":"projects/p/databases/(default)"}"#, true), (#"{"database":""}"#, true),
      (#"{"database":null}"#, true),
      (#"{"database":"projects/p"}"#, false), (#"{"database":"projects/p/databases/d/documents"}"#, false),
      (#"{"database":1}"#, false),
    ] {
      let result = try Self.fromJSON(text) { (d, json, _) throws(WireError) in try d.streamDatabase(json) }
      if case .success = result { #expect(isGood, "\(text)") } else { #expect(!isGood, "\(text)") }
    }
  }

  @Test func escapesTextToASCII() {
    func ascii(_ text: String) -> String {
      json { writer in
        writer.escapesNonASCII = true
        writer.string(text)
      }
    }
    #expect(ascii("plain \"x\"\n") == #""plain \"x\"\n""#)
    #expect(ascii("é") == #""\u00e9""#)
    #expect(ascii("0123456é89\u{FFFF}\u{10FFFF}😀z") == #""0123456\u00e989\uffff\udbff\udfff\ud83d\ude00z""#)
    #expect(ascii(String(repeating: "ж", count: 20)) == "\"" + String(repeating: #"\u0436"#, count: 20) + "\"")
    // Each invalid stored byte becomes U+FFFD, and the following text is unchanged.
    let broken: [UInt8] = [0x61, 0xC3, 0x28, 0xF0, 0x9F, 0x98]
    let text = json { writer in
      writer.escapesNonASCII = true
      broken.withUnsafeBytes { writer.string($0) }
    }
    #expect(text == #""a\ufffd(\ufffd\ufffd\ufffd""#)
    #expect(json { $0.string("é") } == "\"é\"")
  }
}
