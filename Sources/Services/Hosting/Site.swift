import Glibc

/// The response of a site to a path, before it is known which representation the client accepts.
package enum SiteResponse: Sendable {
  case redirect(location: String, status: Int)
  /// A file, with status 200 or 404, and the fields that the configuration adds.
  case file(SiteFile, status: Int, headers: [SiteHeader])
  /// No file and no rule has the path, and the site has no page for that.
  case notFound(headers: [SiteHeader])
  /// A rewrite to a service that the server does not have.
  case unserved(service: String)
}

/// A reason why a site cannot respond now, though it may later.
package enum SiteFailure: Error {
  /// Too many requests wait for files.
  case busy
  /// The folder is missing or cannot be read.
  case noFolder(reason: String)
  /// The process or the system has no descriptor left, or the disk fails.
  case system(reason: String)
}

/// A web app: a folder of files and the rules of `hosting`.
///
/// The order of the rules is Firebase's: redirects, files, rewrites, the page for errors (Firebase's documentation of
/// Hosting, "Priority order of Hosting responses"). Functions of a site read files, so call them on a thread that may
/// wait for a disk. They can run on several threads at once.
package struct Site: Sendable {
  /// The path of the folder.
  package var folder: String { files.path }
  private let files: SiteFolder
  private let rules: SiteRules
  private let cache: FileContentCache

  /// Creates a site of a folder, which need not exist yet.
  package init(folder: String, rules: SiteRules, cache: FileContentCache) {
    files = SiteFolder(path: folder)
    self.rules = rules
    self.cache = cache
  }

  /// Whether responses depend on the languages and the country of the request.
  package var isTranslated: Bool { rules.translations != nil }

  /// Returns the response to a path.
  ///
  /// - Throws: ``SiteFailure`` if the files cannot be read now.
  package func response(to path: SitePath, _ languages: Languages) throws(SiteFailure) -> SiteResponse {
    if let redirect = rules.redirects.first(
      for: path.bytes,
      { rule in
        rule.target.location(for: path.bytes).map { SiteResponse.redirect(location: $0, status: rule.status) }
      })
    {
      return redirect
    }
    do throws(SiteFolder.Failure) {
      return try files.withOpen { (folder) throws(SiteFolder.Failure) in
        let search = SiteSearch(folder: folder, rules: rules, cache: cache, translations: languages.folders)
        return try search.response(to: path)
      }
    } catch {
      let reason = String(cString: strerror(error.code))
      switch error.code {
      case ENOENT, ENOTDIR, EACCES: throw .noFolder(reason: reason)
      default: throw .system(reason: reason)
      }
    }
  }

  /// Opens a representation whose bytes are not in memory. Returns `nil` if the file has changed since.
  ///
  /// - Throws: ``SiteFailure`` if the files cannot be read now.
  package func open(_ form: SiteFile.Form) throws(SiteFailure) -> OpenFile? {
    do throws(SiteFolder.Failure) {
      return try files.withOpen { (folder) throws(SiteFolder.Failure) in
        try folder.file(form.path).flatMap { $0.stamp == form.stamp ? $0 : nil }
      }
    } catch { throw .system(reason: String(cString: strerror(error.code))) }
  }
}
