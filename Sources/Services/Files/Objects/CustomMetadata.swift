/// The custom metadata of an object: texts by name. Names are compared and sorted by their bytes.
package struct CustomMetadata: Equatable, Sendable {
  /// The names and values, sorted by the bytes of the names.
  package private(set) var entries: [(name: String, value: String)] = []

  /// The name under which download tokens are stored, separated by commas.
  package static let downloadTokensName = "firebaseStorageDownloadTokens"

  /// Creates empty metadata.
  package init() {}

  /// Whether the metadata are empty.
  package var isEmpty: Bool { entries.isEmpty }

  /// The text of a name. Setting `nil` removes it.
  package subscript(name: String) -> String? {
    get {
      let place = place(of: name)
      return place.isFound ? entries[place.index].value : nil
    }
    set {
      let place = place(of: name)
      switch (newValue, place.isFound) {
      case (let value?, true): entries[place.index].value = value
      case (let value?, false): entries.insert((name, value), at: place.index)
      case (nil, true): entries.remove(at: place.index)
      case (nil, false): break
      }
    }
  }

  /// The download tokens of the object. A token permits reading the object without evaluating rules.
  package var downloadTokens: [String] {
    get { self[Self.downloadTokensName]?.split(separator: ",").map(String.init) ?? [] }
    set { self[Self.downloadTokensName] = newValue.isEmpty ? nil : newValue.joined(separator: ",") }
  }

  /// The size of all names and values, in bytes.
  package var byteCount: Int { entries.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count } }

  private func place(of name: String) -> (index: Int, isFound: Bool) {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].name.utf8.lexicographicallyPrecedes(name.utf8) { low = middle + 1 } else { high = middle }
    }
    return (low, low < entries.count && entries[low].name.utf8.elementsEqual(name.utf8))
  }

  package static func == (left: CustomMetadata, right: CustomMetadata) -> Bool {
    left.entries.elementsEqual(right.entries) {
      $0.name.utf8.elementsEqual($1.name.utf8) && $0.value.utf8.elementsEqual($1.value.utf8)
    }
  }
}
