import DocumentModel
import FixtureTree
import WireFormat

let demo = DatabaseID(project: "demo")!

/// Returns a document as one line: its path and its fields.
func line(_ document: FixtureDocument) throws -> String {
  "\(document.key) \(text(.map(try document.fields.decoded())))"
}

/// Returns a value in a notation that distinguishes all types.
func text(_ value: Value) -> String {
  switch value {
  case .null: "null"
  case .boolean(let flag): "\(flag)"
  case .integer(let number): "\(number)"
  case .double(let number): "double(\(number))"
  case .timestamp(let moment): "time(\(moment))"
  case .string(let text): text.debugDescription
  case .bytes(let bytes): "bytes(\(bytes))"
  case .reference(let name): "ref(\(name))"
  case .geoPoint(let point): "geo(\(point.latitude), \(point.longitude))"
  case .array(let elements): "[" + elements.map(text).joined(separator: ", ") + "]"
  case .map(let map):
    "{" + map.entries.map { "\($0.key): \(text($0.value))" }.joined(separator: ", ") + "}"
  }
}

/// Reads all documents of a text.
func documents(
  _ text: String, shape: CollectionShape? = nil, format: FixtureReader.Format? = nil, chunkBytesMax: Int = .max
) throws(FixtureTreeError) -> [FixtureDocument] {
  try documents(Array(text.utf8), shape: shape, format: format, chunkBytesMax: chunkBytesMax)
}

/// Reads all documents of a byte sequence.
func documents(
  _ bytes: [UInt8], shape: CollectionShape? = nil, format: FixtureReader.Format? = nil, chunkBytesMax: Int = .max
) throws(FixtureTreeError) -> [FixtureDocument] {
  let source = ByteSource(bytes, chunkBytesMax: chunkBytesMax, name: "x.json")
  var reader = try FixtureReader(source, database: demo, shape: shape, format: format)
  var all: [FixtureDocument] = []
  while let document = try reader.next() { all.append(document) }
  return all
}

/// Writes documents as a tree, in name order.
func export(_ documents: [FixtureDocument]) throws -> String {
  let sorted = documents.sorted { $0.key < $1.key }
  var writer = try FixtureTreeWriter(
    database: demo, patterns: CollectionShape.patterns(of: sorted.flatMap { collections(above: $0.key) }))
  var bytes: [UInt8] = []
  for document in sorted {
    try writer.write(document.key, document.fields)
    bytes += writer.takeOutput()
  }
  try writer.finish()
  bytes += writer.takeOutput()
  return String(decoding: bytes, as: UTF8.self)
}

/// Returns the collections that contain a document, innermost first.
func collections(above key: DocumentKey) -> [ResourcePath] {
  var all: [ResourcePath] = []
  var path = key.path
  while !path.isRoot {
    path = path.parent
    all.append(path)
    path = path.parent
  }
  return all
}
