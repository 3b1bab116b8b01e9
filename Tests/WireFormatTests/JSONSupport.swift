import DocumentModel

@testable import WireFormat

/// Decodes `text` with a new parser and decoder.
func decoding<R>(
  _ text: String, _ body: (JSONMessageDecoder, JSONValue) throws(WireError) -> R
) throws(WireError) -> R {
  try decoding(Array(text.utf8), body)
}

func decoding<R>(
  _ text: [UInt8], _ body: (JSONMessageDecoder, JSONValue) throws(WireError) -> R
) throws(WireError) -> R {
  let document = JSONDocument()
  let decoder = JSONMessageDecoder()
  return try text.withRawBytes { (buffer) throws(WireError) in
    try document.withParsed(buffer) { (root) throws(WireError) in try body(decoder, root) }
  }
}

func fields(json: String) throws(WireError) -> EncodedFields {
  try decoding(json) { (decoder, root) throws(WireError) in try decoder.fields(root) }
}

func value(json: String) throws(WireError) -> Value {
  try decoding(json) { (decoder, root) throws(WireError) in try decoder.value(root, .stored) }
}

func write(json: String) throws(WireError) -> AddressedWrite {
  try decoding(json) { (decoder, root) throws(WireError) in
    guard case .object(let members) = root.kind else { return try decoder.write(root) }
    var inner = members
    guard let (name, list) = inner.next(), case "writes" = name else { return try decoder.write(root) }
    decoder.enter("writes")
    return try decoder.writes(list)[0]
  }
}

func json(_ style: JSONWriter.Style = .compact, _ body: (inout JSONWriter) -> Void) -> String {
  var writer = JSONWriter(style)
  body(&writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

func json(_ value: Value, _ style: JSONWriter.Style = .compact) throws -> String {
  var writer = JSONWriter(style)
  try DocumentJSON.append(value, to: &writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

func json(
  _ document: EncodedDocument, mask: FieldMask? = nil, _ style: JSONWriter.Style = .compact
) throws -> String {
  var writer = JSONWriter(style)
  try DocumentJSON.append(document, mask: mask, to: &writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

func json(_ result: WriteResult) throws -> String {
  var writer = JSONWriter(.compact)
  try DocumentJSON.append(result, to: &writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

/// Returns the text of the error that `body` throws, or a text that says that it threw none.
func message<R>(_ body: () throws(WireError) -> R) -> String {
  do throws(WireError) {
    return "no error, but the result \(try body())"
  } catch {
    return error.description
  }
}
