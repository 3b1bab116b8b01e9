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

  /// Creates a tree of paths.
  /// - Throws: ``PipelineError`` if a path is equal to another or inside it.
  init(_ paths: [FieldPath]) throws(PipelineError) {
    for (number, path) in paths.enumerated() {
      guard Self.insert(path.segments[...], number, into: &nodes) else {
        throw PipelineError("The field \(path.text) occurs twice, or contains another one that occurs.")
      }
    }
  }

  private static func insert(_ path: ArraySlice<String>, _ number: Int, into nodes: inout [Node]) -> Bool {
    guard let first = path.first else { return false }
    let name = Array(first.utf8)
    let place = nodes.firstIndex { Ordering.raw($0.name, name) != .less } ?? nodes.count
    let isLast = path.count == 1
    if place < nodes.count, nodes[place].name == name {
      guard !isLast, nodes[place].leaf == nil else { return false }
      return insert(path.dropFirst(), number, into: &nodes[place].children)
    }
    nodes.insert(Node(name: name, leaf: isLast ? number : nil), at: place)
    return isLast || insert(path.dropFirst(), number, into: &nodes[place].children)
  }
}
