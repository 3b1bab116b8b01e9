import FixtureTree

/// The entry point for fuzzing. It must not trap on any bytes.
package enum ArchiveFuzz {
  /// The content of one archive that is read. Inputs can expand a lot.
  private static let contentBytesMax = 1 << 20

  /// Reads bytes as a tar archive, as a gzip file, and as a zip archive.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    let input = [UInt8](bytes)
    var left = contentBytesMax
    read(TarReader(file: "input", stream: ByteStream(pieces(input))), &left)
    let decoder = DeflateDecoder(.gzip, file: "input", pieces(input))
    let unpacked = ByteStream { () throws(FixtureTreeError) in try decoder.next() }
    read(TarReader(file: "input", stream: unpacked), &left)
    try? ZipReader(archive: ArchiveFile(name: "input", input)).forEach { (_, _, next) throws(FixtureTreeError) in
      try drain(next, &left)
    }
  }

  private static func read(_ tar: TarReader, _ left: inout Int) {
    try? tar.forEach { (_, _, next) throws(FixtureTreeError) in try drain(next, &left) }
  }

  private static func drain(_ next: ByteStream.Next, _ left: inout Int) throws(FixtureTreeError) {
    while left > 0 {
      let piece = try next()
      if piece.isEmpty { return }
      left -= piece.count
    }
  }

  private static func pieces(_ input: [UInt8]) -> ByteStream.Next {
    var offset = 0
    return {
      let end = min(input.count, offset + 100)
      defer { offset = end }
      return Array(input[offset..<end])
    }
  }
}
