import Glibc
package import Transport

/// Finds the route of a request: first by the segments of the path, then by method, verb and condition.
///
/// The routes form a tree of path segments. A literal segment is preferred to a capture, and a capture of one segment to
/// a capture of the rest, unless the segment is empty. Among the routes of one path the first one wins. Cost: a comparison for each segment and
/// each of the literals that may occur there; no allocation.
package struct Router: Sendable {
  /// A place in the tree: the segments that may follow, and the routes that may end here.
  private struct Node {
    var literals: [(text: [UInt8], node: Int)] = []
    /// The node after a captured segment.
    var capture: Int?
    /// The rows of routes that end here.
    var ends: [Row] = []
    /// The rows of routes that capture all further segments.
    var rests: [Row] = []
  }

  /// A route at a node.
  private struct Row {
    let number: Int
    let methods: HTTPMethods
    let verb: [UInt8]
    let parity: RoutePattern.Parity
    let hasCondition: Bool

    init(
      _ number: Int, _ endpoint: any RoutedEndpoint, _ parity: RoutePattern.Parity, verb: UnsafeRawBufferPointer? = nil
    ) {
      self.number = number
      methods = endpoint.methods
      self.verb = verb.map { Array($0) } ?? []
      self.parity = parity
      hasCondition = endpoint.hasCondition
    }
  }

  /// The routes, in the order of the table.
  private let endpoints: [any RoutedEndpoint]
  private var nodes = [Node()]

  /// Creates a router for the routes of all APIs.
  package init(_ endpoints: [any RoutedEndpoint]) {
    self.endpoints = endpoints
    for (number, endpoint) in endpoints.enumerated() {
      for pattern in endpoint.paths { insert(pattern, number, endpoint) }
    }
  }

  private mutating func insert(_ pattern: RoutePattern, _ number: Int, _ endpoint: any RoutedEndpoint) {
    pattern.withParts { path, verb in
      var (node, start, captures) = (0, 1, 0)
      while start <= path.count {
        let (segment, next) = RoutePattern.segment(of: path, at: start)
        switch segment {
        case .literal(let text):
          // `…/documents/{path...}:verb` without a path is `…/documents:verb`.
          if next <= path.count, case .rest(.any) = RoutePattern.segment(of: path, at: next).segment {
            let end = (Array(text) + Array(verb)).withUnsafeBytes { child(of: node, $0) }
            nodes[end].ends.append(Row(number, endpoint, .any))
          }
          node = child(of: node, text)
        case .one:
          captures += 1
          if nodes[node].capture == nil {
            nodes[node].capture = nodes.count
            nodes.append(Node())
          }
          node = nodes[node].capture ?? 0
        case .rest(let parity):
          precondition(captures < 4, "too many captures")
          return nodes[node].rests.append(Row(number, endpoint, parity, verb: verb))
        }
        start = next
      }
      precondition(captures <= 4, "too many captures")
      nodes[node].ends.append(Row(number, endpoint, .any, verb: verb))
    }
  }

  /// Returns the node after a literal segment.
  private mutating func child(of node: Int, _ text: UnsafeRawBufferPointer) -> Int {
    for (known, next) in nodes[node].literals where known.count == text.count {
      if text.elementsEqual(known) { return next }
    }
    nodes[node].literals.append((Array(text), nodes.count))
    nodes.append(Node())
    return nodes.count - 1
  }

  /// Returns the route of a request.
  package func match(_ request: borrowing HTTPRequest) -> RouteMatch {
    let path = request.target.pathAndQuery.path
    guard path.first == UInt8(ascii: "/") else { return .notFound }
    var search = Search(path: path, method: HTTPMethods(request.method))
    if find(0, from: 1, captured: 0, &search, request) { return search.match }
    guard let row = search.otherMethod else { return .notFound }
    search.match.found(row, isWrongMethod: true)
    return search.match
  }

  private struct Search {
    let path: UnsafeRawBufferPointer
    let method: HTTPMethods
    var match = RouteMatch()
    /// The first row that has the path but not the method.
    var otherMethod: Int?
  }

  /// Searches the tree below a node for the segments from `start`, which is after the end of the path if none is left.
  private func find(
    _ node: Int, from start: Int, captured: Int, _ search: inout Search, _ request: borrowing HTTPRequest
  ) -> Bool {
    let path = search.path
    guard start <= path.count else { return select(nodes[node].ends, captured, &search, request) }
    let end = path.offset(of: UInt8(ascii: "/"), from: start)
    let segment = UnsafeRawBufferPointer(rebasing: path[start..<end])
    if let next = literal(segment, of: node), find(next, from: end + 1, captured: captured, &search, request) {
      return true
    }
    func one(_ end: Int) -> Bool {
      guard let next = nodes[node].capture else { return false }
      search.match[captured] = RouteMatch.Part(start: start, count: end - start)
      return find(next, from: end + 1, captured: captured + 1, &search, request)
    }
    if !segment.isEmpty, one(end) { return true }
    if !nodes[node].rests.isEmpty {
      search.match[captured] = RouteMatch.Part(start: start, count: path.count - start)
      if select(nodes[node].rests, captured + 1, &search, request) { return true }
    }
    return segment.isEmpty && one(end)
  }

  private func literal(_ segment: UnsafeRawBufferPointer, of node: Int) -> Int? {
    let literals = nodes[node].literals
    for index in literals.indices where literals[index].text.count == segment.count {
      let isEqual = literals[index].text.withUnsafeBytes { text in
        guard let left = text.baseAddress, let right = segment.baseAddress else { return true }
        return memcmp(left, right, segment.count) == 0
      }
      if isEqual { return literals[index].node }
    }
    return nil
  }

  /// Selects the first row whose method, verb and condition match.
  private func select(
    _ rows: [Row], _ captured: Int, _ search: inout Search, _ request: borrowing HTTPRequest
  ) -> Bool {
    for row in rows {
      guard row.verb.isEmpty || hasVerb(row, search, captured),
        row.parity == .any || hasParity(row, search, captured)
      else { continue }
      let hasMethod = row.methods.contains(search.method)
      guard hasMethod || search.otherMethod == nil else { continue }
      if row.hasCondition, !endpoints[row.number].isWanted(request) { continue }
      guard hasMethod else {
        search.otherMethod = row.number
        continue
      }
      if captured > 0 { search.match[captured - 1].count -= Int32(row.verb.count) }
      search.match.found(row.number)
      return true
    }
    return false
  }

  /// Whether the number of segments of the last capture is as the row wants it.
  private func hasParity(_ row: Row, _ search: Search, _ captured: Int) -> Bool {
    let isOdd = search.path[Int(search.match[captured - 1].start)...].reduce(true) { isOdd, byte in
      byte == UInt8(ascii: "/") ? !isOdd : isOdd
    }
    return isOdd == (row.parity == .odd)
  }

  /// Whether the path ends with the verb of the row, after at least one byte of the last capture.
  private func hasVerb(_ row: Row, _ search: Search, _ captured: Int) -> Bool {
    (captured == 0 || search.match[captured - 1].count > row.verb.count)
      && search.path.suffix(row.verb.count).elementsEqual(row.verb)
  }
}
