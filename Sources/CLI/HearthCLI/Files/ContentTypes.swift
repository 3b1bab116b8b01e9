import Hosting

/// Guesses the media type of a file from the extension of its name.
enum ContentTypes {
  /// The type of files with an unknown extension.
  static let unknown = MediaType.unknown

  /// Returns the media type of a file with that name.
  static func type(ofFile name: String) -> String { MediaType.type(ofFile: FileLocation.lastPart(name).utf8) }
}
