public import Foundation

/// A property with the ID of the document from which the value was read. It is not a field of the document.
///
///     struct Person: Codable {
///       @DocumentID var id: String?
///       var name: String
///     }
@propertyWrapper public struct DocumentID: Codable, Sendable, Hashable {
  /// The ID, or `nil` for a value that was not read from a document.
  public var wrappedValue: String?

  /// A property with this ID.
  public init(wrappedValue: String?) { self.wrappedValue = wrappedValue }

  /// Decodes an ID that another encoder wrote.
  /// - Throws: The error of the decoder.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(String?.self)
  }

  /// Encodes the ID with another encoder.
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}

/// A property to which the server assigns its time on a write if the property is `nil`.
///
///     struct Message: Codable {
///       var text: String
///       @ServerTimestamp var sentAt: Date?
///     }
@propertyWrapper public struct ServerTimestamp: Codable, Sendable, Hashable {
  /// The time. `nil` requests the time of the server.
  public var wrappedValue: Date?

  /// A property with this time.
  public init(wrappedValue: Date?) { self.wrappedValue = wrappedValue }

  /// Decodes a time that another encoder wrote.
  /// - Throws: The error of the decoder.
  public init(from decoder: any Decoder) throws {
    wrappedValue = try decoder.singleValueContainer().decode(Date?.self)
  }

  /// Encodes the time with another encoder.
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(wrappedValue)
  }
}
