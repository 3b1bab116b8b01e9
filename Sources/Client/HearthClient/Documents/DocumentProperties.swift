public import Foundation

/// A property that is the id of the document a value was read from, and no field of it.
///
///     struct Person: Codable {
///       @DocumentID var id: String?
///       var name: String
///     }
@propertyWrapper public struct DocumentID: Codable, Sendable, Hashable {
  /// The id; `nil` for a value that was read from no document.
  public var wrappedValue: String?

  /// Wraps an id.
  public init(wrappedValue: String?) { self.wrappedValue = wrappedValue }

  /// Reads the id that another encoder wrote.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(String?.self)
  }

  /// Writes the id to another encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}

/// A property into which the server puts its time while it is `nil`.
///
///     struct Message: Codable {
///       var text: String
///       @ServerTimestamp var sentAt: Date?
///     }
@propertyWrapper public struct ServerTimestamp: Codable, Sendable, Hashable {
  /// The time; `nil` asks the server for its own.
  public var wrappedValue: Date?

  /// Wraps a time.
  public init(wrappedValue: Date?) { self.wrappedValue = wrappedValue }

  /// Reads the time that another encoder wrote.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(Date?.self)
  }

  /// Writes the time to another encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}
