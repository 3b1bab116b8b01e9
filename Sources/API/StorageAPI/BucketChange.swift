import Files
import GatewayCore
import WireFormat

/// A bucket's metadata as a client sends it in JSON, for a new bucket or as changes to an existing one.
struct BucketChange: Sendable {
  /// The bucket's name, if the JSON contains it.
  private(set) var name: String?
  private var storageClass: String?
  private var location: String?
  private var keepsVersions: Bool?
  private var labels: [(name: String, value: String?)] = []
  private var clearsLabels = false
  private var settings: [(name: String, value: String?)] = []

  private static let autoclass = "autoclass"

  /// Reads a JSON object. An empty body is valid and mentions nothing.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the body is not a JSON object, or asks for a feature that this server
  ///   lacks.
  init(_ body: UnsafeRawBufferPointer) throws(FilesError) {
    guard body.contains(where: { $0 > 0x20 }) else { return }
    var change = Self()
    var failure: FilesError?
    do throws(WireError) {
      try JSONDocument().withParsed(body, isPadded: true) { (root) throws(WireError) in
        do throws(FilesError) { try change.read(root) } catch { failure = error }
      }
    } catch { throw .invalid(error.description) }
    if let failure { throw failure }
    self = change
  }

  private init() {}

  private mutating func read(_ root: JSONValue) throws(FilesError) {
    guard case .object(var members) = root.kind else { throw .invalid("The body must be a JSON object.") }
    while let (member, value) = members.next() {
      switch (member, value.kind) {
      case ("name", .string(let text)): name = String(decoding: text, as: UTF8.self)
      case ("storageClass", .string(let text)): storageClass = String(decoding: text, as: UTF8.self)
      case ("location", .string(let text)): location = String(decoding: text, as: UTF8.self)
      case ("versioning", _): keepsVersions = !value.isOff
      case ("labels", .null): clearsLabels = true
      case ("labels", .object(var entries)):
        while let (name, value) = entries.next() {
          if case .string(let text) = value.kind {
            labels.append((name.text, String(decoding: text, as: UTF8.self)))
          } else {
            labels.append((name.text, nil))
          }
        }
      case ("lifecycle", _), ("cors", _), ("website", _), ("logging", _), ("billing", _), ("iamConfiguration", _),
        ("autoclass", _), ("rpo", _), ("customPlacementConfig", _):
        settings.append((member.text, value.isNull ? nil : value.json))
      case ("retentionPolicy", _), ("defaultEventBasedHold", _), ("objectRetention", _), ("softDeletePolicy", _),
        ("encryption", _), ("ipFilter", _), ("hierarchicalNamespace", _):
        // If the server ignored these members, clients would rely on protection that does not exist.
        guard value.isOff else { throw .invalid("This server does not support \(member.text) for buckets. Remove it.") }
      default: break
      }
    }
  }

  /// Applies the JSON to a bucket. Members that the JSON does not mention keep their values.
  ///
  /// - Parameter now: in microseconds since 1970.
  func apply(to bucket: inout Bucket, now: Int64) {
    if let storageClass { bucket.storageClass = storageClass }
    if let location { bucket.location = location.uppercased() }
    if let keepsVersions { bucket.keepsVersions = keepsVersions }
    if clearsLabels { bucket.labels = CustomMetadata() }
    for (name, value) in labels { bucket.labels[name] = value }
    for (name, value) in settings {
      let isAutoclass = name == Self.autoclass
      bucket.settings[name] =
        isAutoclass ? value.map { Autoclass.changed(bucket.settings[name], by: $0, now: now) } : value
    }
  }

  /// Removes the metadata that a `PUT` must repeat to keep: versioning, labels and settings.
  static func clear(_ bucket: inout Bucket) {
    bucket.keepsVersions = false
    bucket.labels = CustomMetadata()
    bucket.settings = CustomMetadata()
  }
}

extension JSONValue {
  /// Whether the value asks for nothing: null, false, zero, an empty string, or an object or array of only such
  /// values.
  var isOff: Bool {
    switch kind {
    case .null, .boolean(false), .integer(0): return true
    case .boolean, .integer, .unsigned, .double: return false
    case .string(let text): return text.isEmpty || text.elementsEqual("0".utf8)
    case .object(var members):
      while let (_, value) = members.next() {
        if !value.isOff { return false }
      }
      return true
    case .array(var elements):
      while let element = elements.next() {
        if !element.isOff { return false }
      }
      return true
    }
  }

  /// The value as JSON without whitespace.
  var json: String {
    var writer = JSONWriter(.compact)
    writer.append(self)
    return String(decoding: writer.finish(), as: UTF8.self)
  }
}

extension JSONWriter {
  /// Appends a parsed value.
  mutating func append(_ value: JSONValue) {
    switch value.kind {
    case .null: null()
    case .boolean(let flag): bool(flag)
    case .integer(let number): self.number(Int(number))
    case .unsigned(let number): self.value(String(number))
    case .double(let number): self.value(String(number))
    case .string(let text): string(text)
    case .object(var members):
      beginObject()
      while let (name, value) = members.next() {
        key(name.bytes)
        append(value)
      }
      endObject()
    case .array(var elements):
      beginArray()
      while let element = elements.next() { append(element) }
      endArray()
    }
  }
}
