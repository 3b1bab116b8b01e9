/// Dependencies between transactions, and the cycles among them.
///
/// Nodes are numbers from 0. Cost of each function: linear in the number of edges, unless it says otherwise.
struct TransactionGraph {
  /// Kinds of dependencies.
  struct Edges: OptionSet {
    let rawValue: UInt8

    /// The target appended after an append of the source.
    static let writes = Edges(rawValue: 1)
    /// The target read an append of the source.
    static let reads = Edges(rawValue: 2)
    /// The source read the state before an append of the target.
    static let antiDependencies = Edges(rawValue: 4)
    /// The source ended before the target began.
    static let realTime = Edges(rawValue: 8)

    static let dependencies: Edges = [.writes, .reads]
    static let data: Edges = [.writes, .reads, .antiDependencies]
    static let all: Edges = [.writes, .reads, .antiDependencies, .realTime]
  }

  struct Edge {
    let target: Int
    let kind: Edges
    let reason: String
  }

  private(set) var edges: [[Edge]]

  init(nodeCount: Int) { edges = Array(repeating: [], count: nodeCount) }

  mutating func addNode() -> Int {
    edges.append([])
    return edges.count - 1
  }

  mutating func add(_ source: Int, _ target: Int, _ kind: Edges, _ reason: @autoclosure () -> String) {
    guard source != target else { return }
    guard !edges[source].contains(where: { $0.target == target && $0.kind == kind }) else { return }
    edges[source].append(Edge(target: target, kind: kind, reason: reason()))
  }

  /// Returns the groups of two or more nodes that all reach each other by edges of the kinds (Tarjan, 1972).
  func components(by kinds: Edges) -> [[Int]] {
    var search = ComponentSearch(self, kinds)
    for node in edges.indices { search.visit(node) }
    return search.found
  }

  /// Returns the edges of a shortest path by edges of the kinds, or `nil` if none exists. It passes only nodes of
  /// `allowed`.
  func path(from source: Int, to target: Int, by kinds: Edges, in allowed: Set<Int>) -> [(source: Int, edge: Edge)]? {
    var cameBy: [Int: (source: Int, edge: Edge)] = [:]
    var queue = [source]
    var next = 0
    while next < queue.count {
      let node = queue[next]
      next += 1
      for edge in edges[node] where kinds.contains(edge.kind) && allowed.contains(edge.target) {
        guard cameBy[edge.target] == nil else { continue }
        cameBy[edge.target] = (node, edge)
        if edge.target == target {
          var path: [(source: Int, edge: Edge)] = []
          var at = target
          repeat {
            guard let step = cameBy[at] else { return nil }
            path.append(step)
            at = step.source
          } while at != source
          return path.reversed()
        }
        queue.append(edge.target)
      }
    }
    return nil
  }
}

/// Tarjan's search, with a stack of its own, because histories are deeper than the stack of a thread.
private struct ComponentSearch {
  private let graph: TransactionGraph
  private let kinds: TransactionGraph.Edges
  private var index: [Int]
  private var low: [Int]
  private var isOnStack: [Bool]
  private var stack: [Int] = []
  private var visited = 0
  private(set) var found: [[Int]] = []

  init(_ graph: TransactionGraph, _ kinds: TransactionGraph.Edges) {
    self.graph = graph
    self.kinds = kinds
    let count = graph.edges.count
    index = Array(repeating: -1, count: count)
    low = Array(repeating: 0, count: count)
    isOnStack = Array(repeating: false, count: count)
  }

  mutating func visit(_ root: Int) {
    guard index[root] < 0 else { return }
    var frames: [(node: Int, nextEdge: Int)] = []
    enter(root, &frames)
    while let (node, nextEdge) = frames.last {
      if nextEdge < graph.edges[node].count {
        frames[frames.count - 1].nextEdge += 1
        let edge = graph.edges[node][nextEdge]
        guard kinds.contains(edge.kind) else { continue }
        if index[edge.target] < 0 {
          enter(edge.target, &frames)
        } else if isOnStack[edge.target] {
          low[node] = min(low[node], index[edge.target])
        }
      } else {
        frames.removeLast()
        if let parent = frames.last?.node { low[parent] = min(low[parent], low[node]) }
        if low[node] == index[node] { takeComponent(node) }
      }
    }
  }

  private mutating func enter(_ node: Int, _ frames: inout [(node: Int, nextEdge: Int)]) {
    index[node] = visited
    low[node] = visited
    visited += 1
    stack.append(node)
    isOnStack[node] = true
    frames.append((node, 0))
  }

  private mutating func takeComponent(_ root: Int) {
    var members: [Int] = []
    while let node = stack.popLast() {
      isOnStack[node] = false
      members.append(node)
      if node == root { break }
    }
    if members.count > 1 { found.append(members) }
  }
}
