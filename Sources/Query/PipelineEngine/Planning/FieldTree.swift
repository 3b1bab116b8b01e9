import DocumentModel

/// Field paths as a tree of names, each leaf with the number of its path. Names are sorted by their UTF-8 bytes, like
/// the entries of a map.
struct FieldTree: Sendable {
  struct Node: Sendable {
    let name: [UInt8]
    /// The number of the path that ends here, or `nil` if the paths continue in ``children``.
    var leaf: Int?
    var children: [Node] = []
  }

  private(set) var nodes: [Node] = []

  /// Creates an empty tree.
  init() {}

  /// Creates a tree of paths. Cost: sorting the paths.
  /// - Throws: ``PipelineError`` if a path is equal to another or inside it.
  init(_ paths: [FieldPath]) throws(PipelineError) {
    let names = paths.map { path in path.segments.map { Array($0.utf8) } }
    let order = names.indices.sorted { a, b in
      names[a].lexicographicallyPrecedes(names[b]) { Ordering.raw($0, $1) == .less }
    }
    for number in order {
      guard Self.append(names[number][...], number, to: &nodes) else {
        throw PipelineError("The field \(paths[number].text) occurs twice, or contains another one that occurs.")
      }
    }
  }

  /// Appends a path that sorts after all others in the tree.
  private static func append(_ path: ArraySlice<[UInt8]>, _ number: Int, to nodes: inout [Node]) -> Bool {
    guard let name = path.first else { return false }
    let isLast = path.count == 1
    if let last = nodes.indices.last, nodes[last].name == name {
      guard !isLast, nodes[last].leaf == nil else { return false }
      return append(path.dropFirst(), number, to: &nodes[last].children)
    }
    nodes.append(Node(name: name, leaf: isLast ? number : nil))
    return isLast || append(path.dropFirst(), number, to: &nodes[nodes.count - 1].children)
  }
}
