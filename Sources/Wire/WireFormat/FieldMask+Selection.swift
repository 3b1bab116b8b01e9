import DocumentModel

/// The part of one map that a mask selects. It advances through its sorted paths as the caller goes through the
/// sorted fields.
struct MaskSelection {
  /// The paths that lead into the map. Their names before `depth` are equal.
  private var paths: ArraySlice<FieldPath>
  private let depth: Int

  /// Creates the selection for the top-level fields of a document.
  init(_ mask: FieldMask) {
    paths = mask.paths[...]
    depth = 0
  }

  private init(_ paths: ArraySlice<FieldPath>, depth: Int) {
    self.paths = paths
    self.depth = depth
  }

  /// The selected part of one field.
  enum Part {
    case nothing
    case whole
    /// The part of the value that the selection contains, if the value is a map.
    case inside(MaskSelection)
  }

  /// Returns the selected part of a field. Call it for the fields of the map in order.
  mutating func part(of key: UnsafeRawBufferPointer) -> Part {
    while let path = paths.first {
      switch compare(path, key) {
      case .less: paths = paths.dropFirst()
      case .greater: return .nothing
      case .equal:
        // A mask has no path inside another path, so a path that ends here is the only one of its group.
        if path.segments.count == depth + 1 { return .whole }
        let group = paths.prefix { compare($0, key) == .equal }
        return .inside(MaskSelection(group, depth: depth + 1))
      }
    }
    return .nothing
  }

  /// Returns whether the selection contains a field of the map. Cost: one pass over paths and fields.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the map is damaged.
  func keepsAnything(of map: EncodedMap) throws(WireError) -> Bool {
    var selection = self
    var entries = map.makeIterator()
    while let (key, value) = try entries.next() {
      switch selection.part(of: key) {
      case .nothing: continue
      case .whole: return true
      case .inside(let inner):
        if let fields = try value.fields, try inner.keepsAnything(of: fields) { return true }
      }
    }
    return false
  }

  private func compare(_ path: FieldPath, _ key: UnsafeRawBufferPointer) -> Ordering {
    path.segments[depth].withRawUTF8 { EncodedMap.compare($0, key) }
  }
}
