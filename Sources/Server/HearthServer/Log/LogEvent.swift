/// Something that happened, as the log tells it.
public struct LogEvent: Sendable {
  /// How much it matters.
  public enum Level: Int, Sendable, Comparable, CaseIterable {
    /// For who looks for a mistake.
    case debug
    /// What happens in the ordinary course of things.
    case info
    /// Somebody should look at it.
    case warn
    /// Something does not work.
    case error

    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// The value of a field.
  public enum Value: Sendable, Equatable {
    /// Any text; it may be a client's.
    case text(String)
    /// A number.
    case integer(Int)
    /// A duration or size with a fraction.
    case decimal(Double)
  }

  /// A field.
  public typealias Field = (name: StaticString, value: Value)

  /// How much it matters.
  public var level: Level
  /// What kind of event it is, such as `rules.reloaded`: a fixed word that programs may look for.
  public var name: StaticString
  /// What happened, for people; empty where the fields say all.
  public var message: String
  /// The rest.
  public var fields: [Field]

  /// Describes an event.
  public init(_ level: Level, _ name: StaticString, _ message: String = "", _ fields: [Field] = []) {
    self.level = level
    self.name = name
    self.message = message
    self.fields = fields
  }

  /// A text that stays one line and steers no terminal: names in it may be those that clients chose.
  static func oneLine(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { steers($0) ? " " : $0 }))
  }

  private static func steers(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // Marks that turn the direction of writing are of the kind `format`.
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
