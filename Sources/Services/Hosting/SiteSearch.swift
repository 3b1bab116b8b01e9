/// The search for the response to one path, after its redirects.
///
/// How `cleanUrls` and `trailingSlash` combine follows superstatic, the server of Firebase's tools.
struct SiteSearch {
  let folder: OpenFolder
  let rules: SiteRules
  let cache: FileContentCache
  /// The names of the folders of translated content that fit the request, the best one first.
  let translations: [String]

  private static let errorPage = SitePath("/404.html")

  /// Returns the response to a path.
  /// - Throws: ``SiteFolder/Failure`` if the server cannot look for files now.
  func response(to path: SitePath) throws(SiteFolder.Failure) -> SiteResponse {
    if let response = try stored(path) { return response }
    let rewrite = rules.rewrites.first(for: path.bytes) { $0 }
    switch rewrite {
    case .unserved(let service)?: return .unserved(service: service)
    case .file(let destination)?:
      if let file = try destinationFile(destination) { return .file(file, status: 200, headers: headers(for: [path])) }
    case nil: break
    }
    guard let errorPage = Self.errorPage else { return .notFound(headers: headers(for: [path])) }
    let headers = headers(for: [path, errorPage])
    return try file(errorPage).map { .file($0, status: 404, headers: headers) } ?? .notFound(headers: headers)
  }

  /// Returns the file of a path, or the redirect to the form of the path that the configuration wants. Returns `nil` if
  /// the site has no file for it.
  private func stored(_ path: SitePath) throws(SiteFolder.Failure) -> SiteResponse? {
    if let file = try file(path) {
      if rules.hasCleanURLs, path.hasSuffix(".html") { return redirect(to: withoutExtension(path)) }
      return .file(file, status: path == Self.errorPage ? 404 : 200, headers: headers(for: [path]))
    }
    if let file = try file(path.hasTrailingSlash ? path.appending("index.html") : path.appending("/index.html")) {
      switch (rules.trailingSlash, path.hasTrailingSlash) {
      case (.asStored, false) where !rules.hasCleanURLs, (.always, false): return redirect(to: path.appending("/"))
      case (.never, true) where !path.isRoot: return redirect(to: path.dropping(1))
      default: return .file(file, status: 200, headers: headers(for: [path]))
      }
    }
    return rules.hasCleanURLs && !path.isRoot ? try clean(path) : nil
  }

  /// Returns the response to a path to which `.html` was not added.
  private func clean(_ path: SitePath) throws(SiteFolder.Failure) -> SiteResponse? {
    if path.hasTrailingSlash, rules.trailingSlash == .asStored { return nil }
    let plain = path.hasTrailingSlash ? path.dropping(1) : path
    guard let file = try file(plain.appending(".html")) else { return nil }
    switch (rules.trailingSlash, path.hasTrailingSlash) {
    case (.never, true): return redirect(to: plain)
    case (.always, false): return redirect(to: withoutExtension(plain.appending(".html")))
    default: break
    }
    if plain.hasSuffix("/index") { return redirect(to: plain.dropping(6)) }
    return .file(file, status: 200, headers: headers(for: [path]))
  }

  /// Returns the path without `.html` or `/index.html`, and with a slash at its end if the site wants one.
  private func withoutExtension(_ path: SitePath) -> SitePath {
    var path = path.dropping(5)
    if path.hasSuffix("/index") { path = path.dropping(6) }
    return rules.trailingSlash == .always && !path.hasTrailingSlash ? path.appending("/") : path
  }

  private func redirect(to path: SitePath) -> SiteResponse { .redirect(location: path.encoded, status: 301) }

  /// Returns the file of a rewrite: itself, with `.html` if the site has clean URLs, or the index of the folder.
  private func destinationFile(_ path: SitePath) throws(SiteFolder.Failure) -> SiteFile? {
    if let file = try file(path) { return file }
    if rules.hasCleanURLs, !path.hasTrailingSlash, let file = try file(path.appending(".html")) { return file }
    return try file(path.hasTrailingSlash ? path.appending("index.html") : path.appending("/index.html"))
  }

  /// Returns the file at a path, translated if possible.
  private func file(_ path: SitePath) throws(SiteFolder.Failure) -> SiteFile? {
    if let root = rules.translations {
      for name in translations {
        if let file = try untranslated(path.below(root + [UInt8(ascii: "/")] + Array(name.utf8))) { return file }
      }
    }
    return try untranslated(path)
  }

  private func untranslated(_ path: SitePath) throws(SiteFolder.Failure) -> SiteFile? {
    guard !rules.ignored.contains(path), let file = try folder.file(path) else { return nil }
    return try SiteFile(file, at: path, in: folder, cache)
  }

  /// Returns the fields that the configuration adds for paths. A later rule overrides an earlier one.
  private func headers(for paths: [SitePath]) -> [SiteHeader] {
    guard !rules.headers.isEmpty else { return [] }
    var headers: [SiteHeader] = []
    for path in paths {
      rules.headers.forEach(for: path.bytes) { added in
        for header in added {
          headers.removeAll { $0.name.lowercased() == header.name.lowercased() }
          headers.append(header)
        }
      }
    }
    return headers
  }
}
