import Glibc

/// The reason why a query gets no memory or no temporary file. The description tells the client what to do. It contains
/// no paths, except for ``system(operation:path:code:)``, which is for the log.
package enum ScratchError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The query waited too long for memory.
  case waitedTooLong(seconds: Int)
  /// Too many queries wait for memory.
  case tooManyWaiting(Int)
  /// The query needs more memory than one query may have.
  case queryMemory(bytesMax: Int)
  /// The query needs a longer temporary file than one query may have.
  case queryFile(bytesMax: Int)
  /// The temporary files of all queries are as long as they may be.
  case allFiles(bytesMax: Int)
  /// Other queries waited for the memory of this one, whose client read too slowly.
  case revoked
  /// The disk of the temporary files is full.
  case diskFull(path: String)
  /// A system call failed.
  case system(operation: String, path: String, code: Int32)

  private static let remedy = "Declare an index for the order of the query, or add a limit"

  package var description: String {
    switch self {
    case .waitedTooLong(let seconds):
      "The query sorts its results, and other queries use all memory for that: it waited \(seconds) seconds. "
        + "\(Self.remedy), or try again later."
    case .tooManyWaiting(let count):
      "The query sorts its results, and other queries use all memory for that: \(count) wait already. "
        + "\(Self.remedy), or try again later."
    case .queryMemory(let bytesMax):
      "The query needs more than \(bytesMax) bytes of memory. Add a limit, or ask for fewer parts."
    case .queryFile(let bytesMax):
      "The query sorts more results than fit in \(bytesMax) bytes of temporary storage. \(Self.remedy)."
    case .allFiles(let bytesMax):
      "The query sorts its results, and other queries use all \(bytesMax) bytes of temporary storage. "
        + "\(Self.remedy), or try again later."
    case .revoked:
      "The query sorts its results, its client reads them too slowly, and other queries need the memory. "
        + "\(Self.remedy), or read faster."
    case .diskFull: "No space is left on the disk for temporary files. \(Self.remedy)."
    case .system(let operation, let path, let code):
      "\(operation) failed for \(path): \(String(cString: strerror(code)))"
    }
  }
}
