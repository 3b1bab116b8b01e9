package import DocumentModel

// google.firestore.v1.WriteRequest
extension WriteStreamRequest: DecodableMessage {
  package static var typeName: StaticString { "google.firestore.v1.WriteRequest" }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "stream_id") {
      streamID = try field.string()
    } else if field.matches(3, "writes") {
      try field.append(to: &writes)
    } else if field.matches(4, "stream_token") {
      streamToken = try field.bytes()
    } else {
      field.ignore("database")
      field.ignore("labels")
    }
  }
}
