import Basics
import Files
import FileService
import GatewayCore
import WireFormat

/// The list of a bucket's objects in the form of Cloud Storage's XML API, which signed URLs of a bucket request.
struct ObjectListXML: Sendable {
  private let listing: ObjectListing
  /// The name after which the page begins.
  private let marker: String

  /// Reads the parameters of a request: `prefix`, `delimiter`, `marker` and `max-keys`.
  ///
  /// - Throws: ``FilesError`` if the bucket's name or a parameter is not valid.
  init(_ bucket: String, _ parameters: QueryParameters) throws(FilesError) {
    guard ObjectName.isBucket(bucket) else { throw .invalidBucket(bucket) }
    guard parameters.value("list-type") ?? "1" == "1", parameters.value("versions") == nil else {
      throw .invalid("This server lists a bucket by signed URL only with prefix, delimiter, marker and max-keys.")
    }
    var listing = ObjectListing(bucket: bucket)
    listing.requiresBucket = true
    listing.prefix = parameters.value("prefix") ?? ""
    listing.delimiter = parameters.value("delimiter") ?? ""
    marker = parameters.value("marker") ?? ""
    if !marker.isEmpty {
      // The next name after the marker: names contain no zero byte. After a folder, the next name after everything in it.
      let isFolder =
        !listing.delimiter.isEmpty && marker.utf8.reversed().starts(with: listing.delimiter.utf8.reversed())
      listing.start = marker + (isFolder ? "\u{10FFFF}" : "\u{1}")
    }
    if let text = parameters.value("max-keys") {
      guard let count = Int(text), count > 0 else { throw .invalid("Invalid value for max-keys: \(text)") }
      listing.countMax = min(count, 1000)
    }
    self.listing = listing
  }

  /// Reads the page and responds with it.
  func respond(_ made: StorageRequest) {
    made.work { () throws(FilesError) in
      try made.service.listObjects(listing, as: made.caller)
    } then: { page in
      made.sendBody(Array(text(of: page).utf8), type: "application/xml; charset=UTF-8", status: 200, { _ in })
    }
  }

  private func text(of page: ObjectPage) -> String {
    var xml = "<?xml version='1.0' encoding='UTF-8'?>"
    xml += "<ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
    xml += Self.element("Name", listing.bucket) + Self.element("Prefix", listing.prefix)
    xml += Self.element("Marker", marker)
    if !listing.delimiter.isEmpty { xml += Self.element("Delimiter", listing.delimiter) }
    xml += Self.element("MaxKeys", "\(listing.countMax)")
    xml += Self.element("IsTruncated", "\(page.nextPageToken != nil)")
    if page.nextPageToken != nil {
      // The last entry of the page, in the order of the bytes of the names.
      let last = [page.objects.last?.name.name, page.prefixes.last].compactMap(\.self)
        .max { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      xml += Self.element("NextMarker", last ?? marker)
    }
    for object in page.objects {
      xml += "<Contents>" + Self.element("Key", object.name.name)
      xml += Self.element("Generation", "\(object.generation)")
      xml += Self.element("MetaGeneration", "\(object.metageneration)")
      xml += Self.element("LastModified", FilesTime.text(object.updated))
      xml += Self.element("ETag", "\"\(Hexadecimal.text(object.content.md5))\"")
      xml += Self.element("Size", "\(object.content.size)") + "</Contents>"
    }
    for prefix in page.prefixes {
      xml += "<CommonPrefixes>" + Self.element("Prefix", prefix) + "</CommonPrefixes>"
    }
    return xml + "</ListBucketResult>"
  }

  /// Returns an element with text. XML cannot represent most control characters; U+FFFD replaces them.
  private static func element(_ name: String, _ text: String) -> String {
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\t", "\n", "\r": escaped += "&#\(scalar.value);"
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": escaped.unicodeScalars.append("\u{FFFD}")
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return "<\(name)>\(escaped)</\(name)>"
  }
}
