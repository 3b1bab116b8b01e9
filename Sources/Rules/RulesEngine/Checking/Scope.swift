/// The functions and captures that are visible in a block: its own and those of the blocks around it.
final class Scope {
  private let outer: Scope?
  private var functions: [String: Int] = [:]
  private var captures: [String: Int] = [:]
  /// The number of captures of this block and the blocks around it.
  private(set) var captureCount: Int

  init(in outer: Scope?) {
    self.outer = outer
    captureCount = outer?.captureCount ?? 0
  }

  /// Declares a function by its number. Returns `false` if the block already declares the name.
  func declare(function name: String, _ number: Int) -> Bool {
    guard functions[name] == nil else { return false }
    functions[name] = number
    return true
  }

  /// Declares the next capture along the chain of blocks. It hides an outer capture of the same name.
  func declare(capture name: String) {
    captures[name] = captureCount
    captureCount += 1
  }

  /// Returns the number of the function that a name refers to, or `nil` if none is visible.
  func function(_ name: String) -> Int? { functions[name] ?? outer?.function(name) }

  /// Returns the number of the capture that a name refers to, or `nil` if none is visible.
  func capture(_ name: String) -> Int? { captures[name] ?? outer?.capture(name) }

  /// The names of all visible functions.
  var functionNames: Set<String> { (outer?.functionNames ?? []).union(functions.keys) }

  /// The names of all visible captures.
  var captureNames: Set<String> { (outer?.captureNames ?? []).union(captures.keys) }
}
