import Basics

/// A file of a site with its representations, as a response can contain it.
package struct SiteFile: Sendable {
  /// One representation of a file.
  package struct Form: Sendable {
    /// The value of `Content-Encoding`.
    package enum Coding: String, Sendable { case identity, gzip, br }

    package let coding: Coding
    /// The strong validator, with its quotes.
    package let etag: String
    package let size: Int
    /// The bytes, or `nil` if they are read from `file`. Retain ``content`` as long as
    /// them, because it counts their memory.
    package let bytes: [UInt8]?
    /// The content whose memory contains the bytes.
    package let content: FileContent?
    /// The path of the file with the bytes, and the stamp that it had.
    let path: SitePath
    let stamp: ContentStamp
  }

  /// The path of the file below the folder of the site.
  package let path: SitePath
  package let mediaType: String
  /// Seconds since 1970 of the last change.
  package let modifiedSeconds: Int64
  /// The representation without coding first, then those that are smaller.
  package let forms: [Form]

  /// Finds the representations of a file.
  ///
  /// - Throws: ``SiteFolder/Failure`` if the server cannot look for files now.
  init(
    _ file: OpenFile, at path: SitePath, in folder: OpenFolder, _ cache: FileContentCache
  ) throws(SiteFolder.Failure) {
    self.path = path
    mediaType = MediaType.withCharset(ofFile: path.bytes)
    modifiedSeconds = file.modifiedSeconds
    var forms = [Self.form(file, at: path, .identity, cache)]
    for (coding, suffix) in [(Form.Coding.br, ".br" as StaticString), (.gzip, ".gz")] {
      let beside = path.appending(suffix)
      // A file that is older than the original was made from another version of it.
      if let packed = try folder.file(beside), packed.modifiedSeconds + 2 >= file.modifiedSeconds {
        forms.append(Self.form(packed, at: beside, coding, cache))
      }
    }
    if !forms.contains(where: { $0.coding == .gzip }), MediaType.isCompressible(mediaType),
      file.size >= HostingLimits.compressedFileBytesMin, let content = cache.content(of: file),
      let gzip = content.gzip()
    {
      cache.recount(content, of: file.stamp)
      forms.append(
        Form(
          coding: .gzip, etag: "\"\(content.digest)-gz\"", size: gzip.count, bytes: gzip, content: content, path: path,
          stamp: file.stamp)
      )
    }
    self.forms = forms
  }

  private static func form(
    _ file: OpenFile, at path: SitePath, _ coding: Form.Coding, _ cache: FileContentCache
  ) -> Form {
    let content = cache.content(of: file)
    let name = content?.digest ?? hexadecimal(file.stamp.inode) + hexadecimal(UInt(bitPattern: file.stamp.modified))
    return Form(
      coding: coding, etag: "\"\(name)-\(hexadecimal(UInt(file.size)))\"", size: file.size, bytes: content?.bytes,
      content: content, path: path, stamp: file.stamp)
  }

  private static func hexadecimal(_ number: UInt) -> String { String(number, radix: 16) }
}
