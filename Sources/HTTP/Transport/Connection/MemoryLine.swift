/// The connections of one loop that wait for memory for received bytes, the first one that came first.
///
/// The clients must wait with their bytes meanwhile. A connection that gets memory for a body gets all that the body needs,
/// so the bodies in the line complete one after the other, even if all memory has parts of other bodies.
final class MemoryLine {
  private unowned let server: LoopServer
  /// The connections by their place, with the time at which each came.
  private var waiting: [Int: (connection: Connection, sinceMilliseconds: Int)] = [:]
  /// The first place that may be taken, and the next free one.
  private var first = 0
  private var next = 0

  init(_ server: LoopServer) { self.server = server }

  /// Adds a connection at the end. Returns its place.
  func add(_ connection: Connection) -> Int {
    defer { next += 1 }
    waiting[next] = (connection, server.loop.nowMilliseconds)
    return next
  }

  /// Removes a connection that no longer waits.
  func remove(_ place: Int) { waiting[place] = nil }

  /// Lets connections read for which there is memory, in order, and refuses the requests of those that have waited for too
  /// long. The loop calls this after each turn and at each sweep, because other loops free memory too.
  func serve() {
    guard !waiting.isEmpty else { return }
    let latest = server.loop.nowMilliseconds - server.configuration.memorySeconds * 1000
    while first < next {
      if let (connection, since) = waiting[first] {
        if connection.takeAwaitedMemory() {
          waiting[first] = nil
        } else if since <= latest {
          waiting[first] = nil
          connection.refuseAwaitedMemory()
        } else {
          return
        }
      }
      first += 1
    }
  }
}
