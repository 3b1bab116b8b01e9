import Glibc
package import KeyValue

extension FileLog {
  /// Passes every commit after `base` to `body`, in order, and changes nothing. Returns the position after the last.
  ///
  /// Another process may append meanwhile. All commits that were acknowledged before the call are read, and perhaps later
  /// ones; each is on the disk when the function returns. The caller has a ``LogHold``, or no process removes segments.
  ///
  /// Cost: reads the segments with commits after `base`, holds one in memory, and syncs them.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the log lacks commits, is damaged, or belongs to another
  ///   file; the error of `body`; ``StorageError`` if a call fails. `body` has the commits before the damage then.
  package static func read(
    in folder: any LogFolder, after base: LogPosition, secret: UInt64,
    _ body: (UnsafeRawBufferPointer, LogPosition) throws(StorageError) -> Void
  ) throws(StorageError) -> LogPosition {
    var position = base
    var attempts = 0
    while true {
      var failure: StorageError?
      do throws(StorageError) {
        var reading = try LogReading(folder, position, secret, changesFiles: false)
        try reading.run { (batch, next) throws(StorageError) in
          do throws(StorageError) { try body(batch, next) } catch {
            failure = error
            throw error
          }
          position = next
        }
        return position
      } catch {
        // While another process appends, a part of a file can be read before, and a later part after an append.
        attempts += 1
        guard failure == nil, attempts < readAttemptsMax, error.mayPass else { throw error }
        usleep(5000)
      }
    }
  }

  /// The number of attempts to read a log that looks damaged.
  private static let readAttemptsMax = 5
}

extension StorageError {
  /// Whether a process that changes the log meanwhile can cause the failure.
  var mayPass: Bool {
    if case .corruption = self { true } else { isSystem(ENOENT) }
  }
}
