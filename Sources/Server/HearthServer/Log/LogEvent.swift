/// An event for the log.
public struct LogEvent: Sendable {
  /// The severity of an event.
  public enum Level: Int, Sendable, Comparable, CaseIterable {
    /// Diagnostic detail.
    case debug
    /// Normal operation.
    case info
    /// A problem that an administrator should examine.
    case warn
    /// A failure.
    case error

    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// The value of a field.
  public enum Value: Sendable, Equatable {
    /// Any text. It may come from a client.
    case text(String)
    case integer(Int)
    /// A duration or a size with a fraction.
    case decimal(Double)
  }

  /// A named value of an event.
  public typealias Field = (name: StaticString, value: Value)

  public var level: Level
  /// The kind of event, such as `rules.reloaded`: a fixed word that programs can match.
  public var name: StaticString
  /// The event as text for people, or empty if the fields contain everything.
  public var message: String
  public var fields: [Field]

  public init(_ level: Level, _ name: StaticString, _ message: String = "", _ fields: [Field] = []) {
    self.level = level
    self.name = name
    self.message = message
    self.fields = fields
  }

  /// Returns a text without line breaks and terminal control characters. Clients may have chosen names in it.
  static func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { steers($0) ? " " : $0 }))
  }

  private static func steers(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // Marks that change the writing direction have the category `format`.
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
