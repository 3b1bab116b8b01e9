import Basics

/// A copy of a source that can be read only once, such as standard input, in a temporary file without a name. The
/// system removes the file when the process ends. Its length is limited by the disk only.
package final class SpoolFile: Sendable {
  /// The number of bytes in the file.
  package let count: Int
  private let file: ScratchFile
  private let name: String

  private static let pieceBytes = 1 << 20

  /// Copies a source to the directory of the environment variable TMPDIR, or else /tmp. `progress` receives the number
  /// of bytes copied so far.
  /// - Throws: ``FixtureTreeError`` if the source cannot be read or the disk is full.
  package init(copying source: ByteSource, progress: (Int) -> Void = { _ in }) throws(FixtureTreeError) {
    name = source.name
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
    defer { buffer.deallocate() }
    let file = try Self.make(name)
    var end = 0
    while true {
      let count = try source.read(into: buffer)
      if count == 0 { break }
      do throws(ScratchError) {
        try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: end)
      } catch {
        throw Self.failure(name, error)
      }
      end += count
      progress(end)
    }
    self.file = file
    self.count = end
  }

  /// Returns a source that reads the file from its start. Several sources can read it at the same time.
  package func open(meter: ReadMeter? = nil) -> ByteSource {
    var offset = 0
    return ByteSource(name: name) { [self] (buffer) throws(FixtureTreeError) in
      let piece = min(buffer.count, count - offset)
      do throws(ScratchError) {
        try file.read(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<piece]))
      } catch {
        throw Self.failure(name, error)
      }
      offset += piece
      meter?.add(piece)
      return piece
    }
  }

  private static func make(_ name: String) throws(FixtureTreeError) -> ScratchFile {
    do throws(ScratchError) {
      return try ScratchFile(in: nil)
    } catch {
      throw failure(name, error)
    }
  }

  private static func failure(_ name: String, _ error: ScratchError) -> FixtureTreeError {
    let what = "cannot copy the input to a temporary file, to read it twice"
    guard case .diskFull(let path) = error else {
      return FixtureTreeError(file: name, message: "\(what): \(error)")
    }
    return FixtureTreeError(
      file: name, message: "\(what): the disk of \(path) is full; set TMPDIR to a directory with more space")
  }
}
