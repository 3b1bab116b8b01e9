/// Which functions and captures are visible in a block: its own and those of the blocks around it.
final class Scope {
  private let outer: Scope?
  private var functions: [String: Int] = [:]
  private var captures: [String: Int] = [:]
  /// How many captures this block and those around it have.
  private(set) var captureCount: Int

  init(in outer: Scope?) {
    self.outer = outer
    captureCount = outer?.captureCount ?? 0
  }

  /// Declares a function by its number; returns whether the name was free in this block.
  func declare(function name: String, _ number: Int) -> Bool {
    guard functions[name] == nil else { return false }
    functions[name] = number
    return true
  }

  /// Declares the next capture along the chain of blocks; an inner one hides an outer one of the same name.
  func declare(capture name: String) {
    captures[name] = captureCount
    captureCount += 1
  }

  /// The number of the function that a name means here.
  func function(_ name: String) -> Int? { functions[name] ?? outer?.function(name) }

  /// The number of the capture that a name means here.
  func capture(_ name: String) -> Int? { captures[name] ?? outer?.capture(name) }

  /// All functions visible here.
  var functionNames: Set<String> { (outer?.functionNames ?? []).union(functions.keys) }

  /// All captures visible here.
  var captureNames: Set<String> { (outer?.captureNames ?? []).union(captures.keys) }
}
