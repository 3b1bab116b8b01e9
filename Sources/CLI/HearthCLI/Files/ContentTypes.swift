/// Guesses the media type of a file from the extension of its name.
enum ContentTypes {
  /// The type of files with an unknown extension.
  static let unknown = "application/octet-stream"

  private static let byEnding: [String: String] = [
    "aac": "audio/aac", "avif": "image/avif", "avi": "video/x-msvideo", "bmp": "image/bmp", "css": "text/css",
    "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "epub": "application/epub+zip",
    "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif",
    "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon", "jpeg": "image/jpeg",
    "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "m4a": "audio/mp4", "m4v": "video/mp4",
    "md": "text/markdown", "mid": "audio/midi", "mjs": "text/javascript", "mov": "video/quicktime",
    "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg",
    "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rtf": "application/rtf",
    "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff",
    "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
    "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
    "zip": "application/zip", "7z": "application/x-7z-compressed",
  ]

  /// Returns the media type of a file with that name.
  static func type(ofFile name: String) -> String {
    let last = FileLocation.lastPart(name)
    guard let dot = last.lastIndex(of: "."), dot != last.startIndex else { return unknown }
    return byEnding[last[last.index(after: dot)...].lowercased()] ?? unknown
  }
}
