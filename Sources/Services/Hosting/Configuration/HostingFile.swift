package import WireFormat

/// One entry of `hosting` in a `firebase.json`.
package struct HostingEntry: Sendable {
  /// The names by which Firebase's tools choose the entry: `target` and `site`.
  package var names: [String] = []
  /// The folder of the site, relative to the folder of the file.
  package var folder = "public"
  package var rules = SiteRules()
  /// The parts of the entry that are not in force.
  package var problems: [HostingProblem] = []
}

/// A part of a configuration that is not in force. The rest of the configuration is.
package struct HostingProblem: Sendable, Equatable {
  /// The place, such as `hosting.redirects[3].regex`.
  package let key: String
  package let text: String
}

/// Reads the `hosting` section of a `firebase.json`.
package enum HostingFile {
  /// A reason why a file has no usable `hosting` section.
  package struct Failure: Error {
    /// The reason and its place in the file.
    package let text: String

    /// Creates a failure with its reason.
    package init(text: String) { self.text = text }
  }

  /// Returns the entries of the file, or none if it has no `hosting` section.
  /// - Throws: ``Failure`` if the text is not JSON, or `hosting` has another form.
  package static func read(_ bytes: [UInt8]) throws(Failure) -> [HostingEntry] {
    let text = JSONComments.removed(from: bytes)
    let document = JSONDocument(bytesMax: HostingLimits.configurationBytesMax, keptBytesMax: 0)
    let result: Result<[HostingEntry], Failure>
    do throws(WireError) {
      // The parser's closure can throw only `WireError`, so the result is returned as a value.
      result = try text.withRawBytes { (bytes) throws(WireError) in
        try document.withParsed(bytes) { (root) throws(WireError) in Result { () throws(Failure) in try entries(root) }
        }
      }
    } catch { throw Failure(text: error.description) }
    return try result.get()
  }

  /// Returns the entries below the root of a parsed `firebase.json`.
  /// - Throws: ``Failure`` if `hosting` has another form.
  package static func entries(_ root: JSONValue) throws(Failure) -> [HostingEntry] {
    guard case .object(var members) = root.kind else { throw Failure(text: "must be a JSON object") }
    while let (key, value) = members.next() {
      guard "hosting" ~= key else { continue }
      switch value.kind {
      case .null: return []
      case .object: return [HostingEntryReader(value, "hosting").entry]
      case .array(var elements):
        var entries: [HostingEntry] = []
        while let element = elements.next() {
          let place = "hosting[\(entries.count)]"
          guard case .object = element.kind else { throw Failure(text: "\"\(place)\" must be an object") }
          entries.append(HostingEntryReader(element, place).entry)
        }
        return entries
      default: throw Failure(text: "\"hosting\" must be an object or an array")
      }
    }
    return []
  }
}
