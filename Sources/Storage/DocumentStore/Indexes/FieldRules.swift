import DocumentModel

/// The settings of the fields of one collection ID, as a tree of field names.
struct FieldRules: Sendable {
  private struct Node {
    /// The setting that governs this field, or `nil` if its entries are automatic.
    var setting: FieldSetting?
    var children: [(name: [UInt8], node: Int)] = []
  }

  /// A place in the tree: a field named in it, or a field below one that is.
  struct Place: Sendable {
    fileprivate var node: Int
    /// Whether the field is the node's own, so that its children may have nodes too.
    fileprivate var isNamed: Bool
  }

  private var nodes: [Node]

  /// Builds the tree from the settings of the collection ID and of all collections, in any order.
  init(_ settings: [FieldSetting]) {
    let forAllFields = settings.filter { $0.path.isAllFields }
    let root = forAllFields.first { !$0.isForAllCollections } ?? forAllFields.first
    nodes = [Node(setting: root)]
    // Shorter paths first, so that a node inherits what was set above it.
    for setting in settings.filter({ !$0.path.isAllFields }).sorted(by: { $0.path < $1.path }) {
      var node = 0
      for segment in setting.path.segments {
        let name = Array(segment.utf8)
        if let child = nodes[node].children.first(where: { $0.name == name })?.node {
          node = child
        } else {
          nodes[node].children.append((name, nodes.count))
          nodes.append(Node(setting: nodes[node].setting))
          node = nodes.count - 1
        }
      }
      nodes[node].setting = setting
    }
  }

  /// The place of the document itself.
  static let root = Place(node: 0, isNamed: true)

  /// Returns the place of a field inside another field or at the top.
  func place(of name: UnsafeRawBufferPointer, in parent: Place) -> Place {
    guard parent.isNamed,
      let child = nodes[parent.node].children.first(where: {
        $0.name.count == name.count && $0.name.elementsEqual(name)
      })
    else { return Place(node: parent.node, isNamed: false) }
    return Place(node: child.node, isNamed: true)
  }

  /// Returns the place of the field with a path.
  func place(of path: FieldPath) -> Place {
    var place = Self.root
    for segment in path.segments {
      var name = segment
      place = name.withUTF8 { self.place(of: UnsafeRawBufferPointer($0), in: place) }
    }
    return place
  }

  /// Returns the setting that governs a place, or `nil` if its entries are automatic.
  func setting(at place: Place) -> FieldSetting? { nodes[place.node].setting }

  /// Returns the entries that commits write for fields at a place.
  func written(at place: Place) -> AutomaticEntries { nodes[place.node].setting?.written ?? .all }

  /// Returns whether fields inside a place may have other entries than the place itself.
  func hasChildren(at place: Place) -> Bool { place.isNamed && !nodes[place.node].children.isEmpty }
}
