import Files
import FileService
import WireFormat

/// An object's metadata as a client sends it in JSON, for a new object or as changes to an existing one.
struct AttributesReader: Sendable {
  /// The attributes that the JSON mentions, in its order. A `nil` value removes the attribute.
  private var texts: [(attribute: Attribute, value: String?)] = []
  private var metadata: [(name: String, value: String?)]?
  private var clearsMetadata = false
  /// The object's name, if the JSON contains it.
  private(set) var name: String?
  /// The checksums that the JSON declares. The content must match them.
  private(set) var declared = DeclaredChecksums()
  /// The documents to commit with the object, if the JSON contains any.
  private(set) var commit: FileCommit?
  private var takesCommit = false

  private enum Attribute {
    case contentType, contentEncoding, contentDisposition, contentLanguage, cacheControl, customTime, storageClass
  }

  /// Reads a JSON object. An empty body is valid and mentions nothing.
  ///
  /// - Parameter takesCommit: whether the member `commit` is allowed. If not, its presence is an error.
  /// - Throws: ``FilesError/invalid(_:)`` if the JSON is not an object or a member has the wrong type.
  init(_ json: UnsafeRawBufferPointer, takesCommit: Bool = false) throws(FilesError) {
    guard json.contains(where: { $0 > 0x20 }) else { return }
    var reader = Self()
    reader.takesCommit = takesCommit
    var failure: FilesError?
    do throws(WireError) {
      try JSONDocument(bytesMax: 1 << 20, keptBytesMax: 0).withParsed(json) { (root) throws(WireError) in
        do throws(FilesError) { try reader.read(root) } catch { failure = error }
      }
    } catch { throw .invalid(error.description) }
    if let failure { throw failure }
    self = reader
  }

  /// Reads a parsed JSON object, which must not contain `commit`.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the value is not an object or a member has the wrong type.
  init(_ root: JSONValue) throws(FilesError) { try read(root) }

  private init() {}

  private mutating func read(_ root: JSONValue) throws(FilesError) {
    guard case .object(var members) = root.kind else { throw .invalid("The metadata must be a JSON object.") }
    while let (member, value) = members.next() {
      switch member {
      case "name": name = try Self.text(value, "name")
      case "contentType": texts.append((.contentType, try Self.text(value, "contentType")))
      case "contentEncoding": texts.append((.contentEncoding, try Self.text(value, "contentEncoding")))
      case "contentDisposition": texts.append((.contentDisposition, try Self.text(value, "contentDisposition")))
      case "contentLanguage": texts.append((.contentLanguage, try Self.text(value, "contentLanguage")))
      case "cacheControl": texts.append((.cacheControl, try Self.text(value, "cacheControl")))
      case "customTime": texts.append((.customTime, try Self.text(value, "customTime")))
      case "storageClass": texts.append((.storageClass, try Self.text(value, "storageClass")))
      case "md5Hash": declared.md5 = try Self.text(value, "md5Hash")
      case "crc32c": declared.crc32c = try Self.text(value, "crc32c")
      case "metadata": try readMetadata(value)
      case "temporaryHold", "eventBasedHold", "retention", "kmsKeyName", "customerEncryption", "contexts":
        // If the server ignored these members, clients would rely on protection or data that does not exist.
        guard value.isOff else {
          throw .invalid("This server does not support \(member.text) for objects. Remove the member.")
        }
      case "commit":
        guard takesCommit else {
          throw .invalid("The member commit is allowed only in an administrator's upload with uploadType=multipart.")
        }
        commit = try FileCommit(value)
      default: break
      }
    }
  }

  private mutating func readMetadata(_ value: JSONValue) throws(FilesError) {
    switch value.kind {
    case .null: clearsMetadata = true
    case .object(var members):
      var entries: [(name: String, value: String?)] = []
      var bytes = 0
      while let (name, value) = members.next() {
        let entry = (name.text, Self.anyText(value))
        // A change may remove as many bytes as it sets. The server reads no further in a longer one.
        bytes += entry.0.utf8.count + (entry.1?.utf8.count ?? 0) + 1
        guard bytes <= 2 * ObjectAttributes.metadataBytesMax else {
          throw .invalid("Custom metadata may have at most \(ObjectAttributes.metadataBytesMax) bytes in total.")
        }
        entries.append(entry)
      }
      metadata = entries
    default: throw .invalid("The member metadata must be an object.")
    }
  }

  private static func text(_ value: JSONValue, _ name: String) throws(FilesError) -> String? {
    switch value.kind {
    case .null: return nil
    case .string(let text): return String(decoding: text, as: UTF8.self)
    default: throw .invalid("The member \(name) must be a string.")
    }
  }

  /// A value of custom metadata as text, or `nil` for null. Clients expect the server to convert values to text.
  private static func anyText(_ value: JSONValue) -> String? {
    switch value.kind {
    case .null: nil
    case .string(let text): String(decoding: text, as: UTF8.self)
    case .boolean(let value): String(value)
    case .integer(let value): String(value)
    case .unsigned(let value): String(value)
    case .double(let value): String(value)
    case .object, .array: ""
    }
  }

  /// Applies the JSON to attributes. Attributes that the JSON does not mention keep their values.
  ///
  /// - Parameter keepsTokens: keeps the existing download tokens, which Firebase clients neither see nor set.
  func apply(to attributes: inout ObjectAttributes, keepsTokens: Bool) {
    for (attribute, value) in texts {
      switch attribute {
      case .contentType: attributes.contentType = value
      case .contentEncoding: attributes.contentEncoding = value
      case .contentDisposition: attributes.contentDisposition = value
      case .contentLanguage: attributes.contentLanguage = value
      case .cacheControl: attributes.cacheControl = value
      case .customTime: attributes.customTime = value
      case .storageClass: attributes.storageClass = value
      }
    }
    let tokens = attributes.metadata.downloadTokens
    if clearsMetadata { attributes.metadata = CustomMetadata() }
    for (name, value) in metadata ?? [] { attributes.metadata[name] = value }
    if keepsTokens { attributes.metadata.downloadTokens = tokens }
  }

  /// Whether the JSON sets or clears custom metadata.
  var hasMetadata: Bool { metadata != nil || clearsMetadata }
}
