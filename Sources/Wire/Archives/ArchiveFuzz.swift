import FixtureTree

/// The entry point for fuzzing. It must not trap on any bytes.
package enum ArchiveFuzz {
  /// The content of one archive that is read. Inputs can expand a lot.
  private static let contentBytesMax = 1 << 20

  /// Reads bytes as a tar archive, also if it is compressed, as raw deflated bytes, and as a zip archive.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    let input = [UInt8](bytes)
    var left = contentBytesMax
    read(TarReader(file: "input", stream: ByteStream(source(input))), &left)
    if let content = try? source(input).decompressed() {
      read(TarReader(file: "input", stream: ByteStream(content)), &left)
    }
    if let content = try? source(input).inflated() { try? drain(ByteStream.pieces(content), &left) }
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

  private static func source(_ input: [UInt8]) -> ByteSource { ByteSource(input, chunkBytesMax: 100) }
}
