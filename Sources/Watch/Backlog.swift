/// Elements in the order of their arrival. Taken elements are released at once, and the memory shrinks with the
/// backlog. Cost: constant on average.
struct Backlog<Element> {
  private var elements: [Element?] = []
  private var taken = 0

  var count: Int { elements.count - taken }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard taken < elements.count else { return nil }
    let element = elements[taken].take()
    taken += 1
    if taken == elements.count {
      elements.removeAll(keepingCapacity: elements.count < 16)
      taken = 0
    } else if taken >= 64, taken * 2 >= elements.count {
      elements.removeFirst(taken)
      taken = 0
    }
    return element
  }

  mutating func removeAll() { self = Backlog() }
}

extension Backlog: Sendable where Element: Sendable {}
