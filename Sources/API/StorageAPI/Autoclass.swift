import DocumentModel
import WireFormat

/// The member `autoclass` of a bucket. Clients read the times of its last changes. It has no other effect.
///
/// Source: the system tests of Cloud Storage's clients for Node and Python.
struct Autoclass {
  private var isEnabled = false
  /// The time when ``isEnabled`` changed, in microseconds since 1970.
  private var toggled: Int64?
  private var terminalClass: String?
  /// The time when ``terminalClass`` changed, in microseconds since 1970.
  private var terminalClassChanged: Int64?

  /// The storage class to which objects move, if the client names none.
  private static let defaultTerminalClass = "NEARLINE"

  /// Reads the stored or received JSON. Returns `nil` if it is not an object.
  private init?(_ json: String?) {
    guard let json, let tree = try? JSONTree(parsing: Array(json.utf8)), tree.members != nil else { return nil }
    func time(_ field: StaticString) -> Int64? {
      tree[field]?.text.flatMap { Timestamp(rfc3339: $0.utf8)?.microseconds }
    }
    isEnabled = tree["enabled"]?.flag ?? false
    toggled = time("toggleTime")
    terminalClass = tree["terminalStorageClass"]?.text
    terminalClassChanged = time("terminalStorageClassUpdateTime")
  }

  /// Returns the JSON to store after a client sent `change`. The times in it are ignored.
  ///
  /// - Parameter now: in microseconds since 1970.
  static func changed(_ stored: String?, by change: String, now: Int64) -> String {
    guard var new = Autoclass(change) else { return change }
    let old = Autoclass(stored)
    // Each change is later than the one before, also in the milliseconds of responses.
    func moment(after earlier: Int64?) -> Int64 { max(now, (earlier ?? 0) + 1000) }
    new.toggled = old?.isEnabled == new.isEnabled ? old?.toggled : moment(after: old?.toggled)
    if new.isEnabled {
      let terminalClass = new.terminalClass ?? old?.terminalClass ?? defaultTerminalClass
      new.terminalClass = terminalClass
      new.terminalClassChanged =
        old?.terminalClass == terminalClass ? old?.terminalClassChanged : moment(after: old?.terminalClassChanged)
    } else {
      new.terminalClass = nil
      new.terminalClassChanged = nil
    }
    return new.json
  }

  private var json: String {
    var writer = JSONWriter(.compact)
    writer.beginObject()
    writer.key("enabled")
    writer.bool(isEnabled)
    writer.member("toggleTime", toggled.map(FilesTime.text))
    writer.member("terminalStorageClass", terminalClass)
    writer.member("terminalStorageClassUpdateTime", terminalClassChanged.map(FilesTime.text))
    writer.endObject()
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
