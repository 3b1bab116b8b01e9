import DocumentModel
import Testing

@testable import WireFormat

@Suite struct JSONWriteDecodingTests {
  static let name = "projects/p/databases/(default)/documents/c/d"

  static func key() throws -> DocumentKey { try #require(DocumentKey(try ResourcePath("c/d"))) }

  static func rows() throws -> [(String, Write)] {
    let key = try key()
    let fields = EncodedFields(MapValue([("a", .integer(1))]))
    let update = #""update":{"name":"\#(name)","fields":{"a":{"integerValue":"1"}}}"#
    func mask(_ paths: String...) throws -> FieldMask { FieldMask(try paths.map { try FieldPath($0) }) }
    return [
      ("{\(update)}", Write(.update(fields, mask: nil), key: key)),
      (
        #"{"update":{"name":"\#(name)","createTime":"x","update_time":null}}"#,
        Write(.update(.none, mask: nil), key: key)
      ),
      (#"{\#(update),"updateMask":{}}"#, Write(.update(fields, mask: FieldMask([])), key: key)),
      (#"{\#(update),"updateMask":null}"#, Write(.update(fields, mask: nil), key: key)),
      (
        #"{"update_mask":{"field_paths":["a","b.`c d`"]},\#(update)}"#,
        Write(.update(fields, mask: try mask("a", "b.`c d`")), key: key)
      ),
      (
        #"{"delete":"\#(name)","currentDocument":{"exists":true}}"#,
        Write(.delete, key: key, precondition: .exists(true))
      ),
      (#"{"delete":"\#(name)","current_document":{}}"#, Write(.delete, key: key)),
      (
        #"{"verify":"\#(name)","currentDocument":{"updateTime":"1970-01-01T00:00:00.000001Z"}}"#,
        Write(.verify, key: key, precondition: .updateTime(Timestamp(uncheckedMicroseconds: 1)))
      ),
      (
        #"{"transform":{"document":"\#(name)","fieldTransforms":[{"fieldPath":"t","setToServerValue":"REQUEST_TIME"}]}}"#,
        Write(
          .update(.none, mask: FieldMask([])), key: key,
          transforms: [FieldTransform(FieldPath(field: "t"), .requestTime)])
      ),
      (
        #"{\#(update),"updateTransforms":[{"fieldPath":"n","increment":{"integerValue":"2"}},"#
          + #"{"field_path":"n","maximum":{"doubleValue":1.5}},{"fieldPath":"n","minimum":{"integerValue":3}},"#
          + #"{"fieldPath":"l.m","appendMissingElements":{"values":[{"stringValue":"x"}]}},"#
          + #"{"fieldPath":"l","remove_all_from_array":{}},{"fieldPath":"t","set_to_server_value":1}]}"#,
        Write(
          .update(fields, mask: nil), key: key,
          transforms: [
            FieldTransform(FieldPath(field: "n"), .increment(.integer(2))),
            FieldTransform(FieldPath(field: "n"), .maximum(.double(1.5))),
            FieldTransform(FieldPath(field: "n"), .minimum(.integer(3))),
            FieldTransform(FieldPath(segments: ["l", "m"]), .appendMissingElements([.string("x")])),
            FieldTransform(FieldPath(field: "l"), .removeAllFromArray([])),
            FieldTransform(FieldPath(field: "t"), .requestTime),
          ])
      ),
    ]
  }

  @Test func decodesEveryOperation() throws {
    for (text, expected) in try Self.rows() {
      let decoded = try write(json: text)
      #expect(decoded.write == expected, "\(text)")
      #expect(decoded.database == DatabaseID(project: "p"))
    }
  }

  static let refused: [(String, String)] = [
    ("{}", "empty write operation"),
    (#"{"updateMask":{}}"#, "empty write operation"),
    (
      #"{"update":{"name":"N","feilds":{}}}"#,
      #"Invalid JSON payload received. Unknown name "feilds" at 'writes[0].update': Cannot find field."#
    ),
    (#"{"x":{}}"#, #"Invalid JSON payload received. Unknown name "x" at 'writes[0]': Cannot find field."#),
    (
      #"{"update":"x"}"#,
      #"Invalid value at 'writes[0].update' (type.googleapis.com/google.firestore.v1.Document), "x""#
    ),
    (
      #"{"update":[]}"#,
      "Invalid JSON payload received. Invalid value at 'writes[0].update': "
        + "Proto field is not repeating, cannot start list."
    ),
    (
      #"{"update":{"name":"N","fields":{"a":{"integerValue":"x"}}}}"#,
      "Invalid value at 'writes[0].update.fields[0].value.integer_value' (TYPE_INT64), \"x\""
    ),
    (
      #"{"update":{"name":"N"},"delete":"N"}"#,
      "Invalid value at 'writes[0]' (oneof), oneof field 'operation' is already set. Cannot set 'delete'"
    ),
    (#"{"delete":"N","updateMask":{"fieldPaths":["a"]}}"#, "a delete must not specify a document mask."),
    (#"{"verify":"N","updateMask":{}}"#, ModelError.maskWithoutUpdate.description),
    (
      #"{"delete":"N","updateTransforms":[{"fieldPath":"a","setToServerValue":1}]}"#,
      ModelError.transformsWithoutUpdate.description
    ),
    (
      #"{"transform":{"document":"N","fieldTransforms":[{"fieldPath":"a","setToServerValue":1}]},"updateTransforms":[{"fieldPath":"a","setToServerValue":1}]}"#,
      ModelError.transformsWithoutUpdate.description
    ),
    (#"{"delete":7}"#, "Invalid value at 'writes[0].delete' (TYPE_STRING), 7"),
    (
      #"{"delete":"projects/p/databases/d/documents/c"}"#,
      #"Document name "projects/p/databases/d/documents/c" lacks "/" at index 34."#
    ),
    (#"{"update":{"fields":{}}}"#, #"Document name "" lacks "projects" at index 0."#),
    (
      #"{"transform":{"fieldTransforms":[{"fieldPath":"a","setToServerValue":1}]}}"#,
      #"Document name "" lacks "projects" at index 0."#
    ),
    (#"{"transform":{"document":"N","fieldTransforms":[]}}"#, "The list of FieldTransform must not be empty."),
    (#"{"verify":"N"}"#, "a verify must contain a precondition"),
    (#"{"update":{"name":"N"},"updateMask":{"fieldPaths":["a..b"]}}"#, ModelError.invalidFieldPath("a..b").description),
    (#"{"update":{"name":"N"},"updateMask":{"fieldPaths":["__name__"]}}"#, "field name __name__ is reserved"),
    (
      #"{"update":{"name":"N"},"updateMask":{"fieldPaths":["a",3]}}"#,
      "Invalid value at 'writes[0].update_mask.field_paths[1]' (TYPE_STRING), 3"
    ),
    (
      #"{"update":{"name":"N"},"updateMask":"a"}"#,
      #"Invalid value at 'writes[0].update_mask' (type.googleapis.com/google.firestore.v1.DocumentMask), "a""#
    ),
    (
      #"{"delete":"N","currentDocument":{"exists":true,"updateTime":"1970-01-01T00:00:00Z"}}"#,
      "Invalid value at 'writes[0].current_document' (oneof), oneof field 'condition_type' is already set. "
        + "Cannot set 'updateTime'"
    ),
    (
      #"{"delete":"N","currentDocument":{"updateTime":"1970-01-01T00:00:00.0000001Z"}}"#,
      "Timestamp must be microsecond-aligned."
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a","increment":{"stringValue":"x"}}]}"#,
      "Input must be int64 or double."
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a","increment":{"integerValue":"x"}}]}"#,
      "Invalid value at 'writes[0].update_transforms[0].increment.integer_value' (TYPE_INT64), \"x\""
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a"}]}"#,
      "Operation type must be specified for field transformation."
    ),
    (#"{"update":{"name":"N"},"updateTransforms":[{"setToServerValue":1}]}"#, "Invalid empty property path string."),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a","setToServerValue":"NOW"}]}"#,
      "Invalid value at 'writes[0].update_transforms[0].set_to_server_value' (type.googleapis.com/"
        + "google.firestore.v1.DocumentTransform.FieldTransform.ServerValue), \"NOW\""
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a","setToServerValue":1,"maximum":{}}]}"#,
      "Cannot convert firestore.v1.Value with type unset."
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"a","setToServerValue":1,"maximum":{"integerValue":1}}]}"#,
      "Invalid value at 'writes[0].update_transforms[0]' (oneof), oneof field 'transform_type' is already set. "
        + "Cannot set 'maximum'"
    ),
    (
      #"{"update":{"name":"N"},"updateTransforms":[{"fieldPath":"\#(String(repeating: "a.", count: 21))a","#
        + #""setToServerValue":1}]}"#, "Property a contains an invalid nested entity."
    ),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidWrites(row: Int) {
    let (text, expected) = Self.refused[row]
    let body = "{\"writes\":[\(text.replacing("\"N\"", with: "\"\(Self.name)\""))]}"
    #expect(message { () throws(WireError) in try write(json: body) } == expected)
  }

  @Test func limitsTheTransformsOfAWrite() {
    func body(_ count: Int) -> String {
      let one = #"{"fieldPath":"a","setToServerValue":1}"#
      return #"{"update":{"name":"\#(Self.name)"},"updateTransforms":["#
        + Array(repeating: one, count: count).joined(separator: ",") + "]}"
    }
    #expect(throws: Never.self) { try write(json: body(500)) }
    #expect(throws: WireError.model(.tooManyTransforms)) { try write(json: body(501)) }
  }

  @Test func eachWriteHasItsDatabase() throws {
    let text =
      #"[{"delete":"projects/p/databases/d/documents/a/b"},{"delete":"projects/p/databases/d/documents/a/b/c/d"},"#
      + #"{"delete":"projects/q/databases/d/documents/a/b"},{"delete":"projects/p/databases/d/documents/a/b"}]"#
    let writes = try decoding(text) { (decoder, root) throws(WireError) in
      decoder.enter("writes")
      return try decoder.writes(root)
    }
    #expect(writes.map(\.database.project) == ["p", "p", "q", "p"])
    #expect(writes.map(\.write.key.description) == ["a/b", "a/b/c/d", "a/b", "a/b"])
  }

  @Test func decodesTransactionOptions() throws {
    func options(_ text: String) throws(WireError) -> TransactionMode? {
      try decoding(text) { (decoder, root) throws(WireError) in try decoder.decode(root, TransactionOptions()) }
    }
    #expect(try options("{}") == nil)
    #expect(try options(#"{"readOnly":{}}"#) == .readOnly(nil))
    #expect(
      try options(#"{"read_only":{"readTime":"1970-01-01T00:00:01Z"}}"#)
        == .readOnly(Timestamp(uncheckedMicroseconds: 1_000_000)))
    #expect(
      try options(#"{"readWrite":{"retryTransaction":"AQI","concurrencyMode":"OPTIMISTIC"}}"#)
        == .readWrite(retrying: TransactionID(bytes: [1, 2])))
    #expect(try options(#"{"readWrite":{}}"#) == .readWrite(retrying: nil))
    #expect(throws: WireError.self) { try options(#"{"readWrite":{},"readOnly":{}}"#) }
    #expect(throws: WireError.self) { try options(#"{"readOnly":{"retryTransaction":"AQI"}}"#) }
    #expect(throws: WireError.model(.timestampNotAligned)) {
      try options(#"{"readOnly":{"readTime":"1970-01-01T00:00:01.000000001Z"}}"#)
    }
  }

  @Test func decodesInt32FromNumbersAndText() throws {
    let rows: [(String, Int32?)] = [
      ("7", 7), ("\"7\"", 7), ("7.0", 7), ("2147483648", nil), ("\"x\"", nil), ("-2147483648", -2147483648),
      ("1.5", nil),
    ]
    for (text, expected) in rows {
      let decoded = try? decoding(text) { (decoder, root) throws(WireError) in try decoder.int32(root, "limit") }
      #expect(decoded == expected, "\(text)")
    }
  }
}
