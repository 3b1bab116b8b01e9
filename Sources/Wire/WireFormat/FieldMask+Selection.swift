import DocumentModel

/// What a mask keeps of one map: a walk over its sorted paths beside the sorted fields of the map.
struct MaskSelection {
  /// The paths that lead into the map; they agree in the names before `depth`.
  private var paths: ArraySlice<FieldPath>
  private let depth: Int

  /// The selection of a mask at a document's fields.
  init(_ mask: FieldMask) {
    paths = mask.paths[...]
    depth = 0
  }

  private init(_ paths: ArraySlice<FieldPath>, depth: Int) {
    self.paths = paths
    self.depth = depth
  }

  /// What is kept of one field.
  enum Part {
    case nothing
    case whole
    /// The value if it is a map, and of it only what the selection keeps.
    case inside(MaskSelection)
  }

  /// What is kept of the field of that name. Ask in the order of the map's fields.
  mutating func part(of key: UnsafeRawBufferPointer) -> Part {
    while let path = paths.first {
      switch compare(path, key) {
      case .less: paths = paths.dropFirst()
      case .greater: return .nothing
      case .equal:
        // A mask holds no path inside another, so a path that ends here stands alone.
        if path.segments.count == depth + 1 { return .whole }
        let group = paths.prefix { compare($0, key) == .equal }
        return .inside(MaskSelection(group, depth: depth + 1))
      }
    }
    return .nothing
  }

  /// Whether the map has something that is kept. Cost: one walk over paths and fields side by side.
  /// - Throws: ``WireError/malformedProtobuf(_:)``.
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
