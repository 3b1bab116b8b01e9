/// The media types of files, by the extensions of their names.
package enum MediaType {
  /// The type of files with an unknown extension.
  package static let unknown = "application/octet-stream"

  private static let byExtension: [String: String] = [
    "7z": "application/x-7z-compressed", "aac": "audio/aac", "apk": "application/vnd.android.package-archive",
    "atom": "application/atom+xml", "avi": "video/x-msvideo", "avif": "image/avif", "bmp": "image/bmp",
    "css": "text/css", "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "eot": "application/vnd.ms-fontobject",
    "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip",
    "heic": "image/heic", "heif": "image/heif", "htm": "text/html", "html": "text/html",
    "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
    "js": "text/javascript", "json": "application/json", "jsonld": "application/ld+json", "m4a": "audio/mp4",
    "m4v": "video/mp4", "map": "application/json", "md": "text/markdown", "mid": "audio/midi",
    "mjs": "text/javascript", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4",
    "mpeg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg",
    "otf": "font/otf", "pdf": "application/pdf", "png": "image/png", "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rss": "application/rss+xml",
    "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
    "tiff": "image/tiff", "ttf": "font/ttf", "txt": "text/plain", "vcf": "text/vcard", "vtt": "text/vtt",
    "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm", "webm": "video/webm",
    "webmanifest": "application/manifest+json", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
    "xhtml": "application/xhtml+xml", "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
    "zip": "application/zip",
  ]

  /// Returns the type of a file with a name, which may be a path.
  package static func type(ofFile name: some Collection<UInt8>) -> String {
    let bytes = Array(name)
    let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot > start else { return unknown }
    return byExtension[String(decoding: bytes[(dot + 1)...], as: UTF8.self).lowercased()] ?? unknown
  }

  /// Returns the type of a file with `charset=utf-8` if it is text.
  static func withCharset(ofFile name: some Collection<UInt8>) -> String {
    let type = type(ofFile: name)
    return isText(type) ? type + "; charset=utf-8" : type
  }

  private static func isText(_ type: String) -> Bool {
    type.hasPrefix("text/") || type.hasSuffix("json") || type.hasSuffix("xml")
  }

  /// Whether content of a type becomes much smaller with gzip.
  static func isCompressible(_ type: String) -> Bool {
    let name = String(type.prefix { $0 != ";" })
    let others = [
      "application/wasm", "font/ttf", "font/otf", "application/vnd.ms-fontobject", "image/bmp",
      "image/vnd.microsoft.icon",
    ]
    return isText(name) || others.contains(name)
  }
}
