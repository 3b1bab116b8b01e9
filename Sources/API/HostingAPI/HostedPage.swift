import Hosting
import Transport

/// A site's response to a path, with the header fields of each representation written out. Immutable.
final class HostedPage: Sendable {
  struct Form: Sendable {
    let form: SiteFile.Form
    /// The fields of a response with content.
    let fields: HeaderBlock
    /// The fields of a response that says that the client's copy is current.
    let validators: HeaderBlock
  }

  let response: SiteResponse
  /// The representations of the file, if the response is one.
  let forms: [Form]
  let lastModified: String

  /// Firebase's default (Firebase's documentation of Hosting, "Manage cache behavior").
  static let cacheControl = "max-age=3600"
  /// The default of the page for errors, which a client must not keep after the file exists.
  private static let errorCacheControl = "no-cache"

  init(_ response: SiteResponse, isTranslated: Bool) {
    self.response = response
    guard case .file(let file, let status, let headers) = response else {
      (forms, lastModified) = ([], "")
      return
    }
    let lastModified = HTTPDate.text(file.modifiedSeconds)
    self.lastModified = lastModified
    var vary = file.forms.count > 1 ? "Accept-Encoding" : ""
    if isTranslated { vary += (vary.isEmpty ? "" : ", ") + "Accept-Language, X-Country-Code, Cookie" }
    let set = Set(headers.map { $0.name.lowercased() })
    forms = file.forms.map { form in
      let common = { (fields: inout HeaderWriter) in
        for header in headers where header.name.lowercased() != "content-type" {
          fields.add(name: header.name, value: header.value)
        }
        if !set.contains("cache-control") {
          fields.add("Cache-Control", status == 200 ? Self.cacheControl : Self.errorCacheControl)
        }
        if !vary.isEmpty { fields.add("Vary", vary) }
        guard status == 200 else { return }
        fields.add("ETag", form.etag)
        fields.add("Last-Modified", lastModified)
      }
      return Form(
        form: form,
        fields: HeaderBlock { fields in
          let type = headers.last { $0.name.lowercased() == "content-type" }?.value ?? file.mediaType
          fields.add("Content-Type", type)
          if form.coding != .identity { fields.add("Content-Encoding", form.coding.rawValue) }
          if status == 200 { fields.add("Accept-Ranges", "bytes") }
          common(&fields)
        }, validators: HeaderBlock(common))
    }
  }

  /// The bytes that the page takes in memory. Content that a cache or another page shares is counted again.
  var heldBytes: Int {
    func size(_ headers: [SiteHeader]) -> Int {
      headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    }
    let own =
      switch response {
      case .redirect(let location, _): location.utf8.count
      case .file(let file, _, let headers): file.path.bytes.count + size(headers)
      case .notFound(let headers): size(headers)
      case .unserved(let service): service.utf8.count
      }
    return forms.reduce(own + 512) { sum, form in
      sum + (form.form.bytes?.count ?? 0) + form.fields.count + form.validators.count + 256
    }
  }

  /// Returns the representation for a client: the smallest that it accepts.
  func form(accepting codings: HostedRequest.Codings) -> Form? {
    if codings.contains(.br), let form = forms.first(where: { $0.form.coding == .br }) { return form }
    if codings.contains(.gzip), let form = forms.first(where: { $0.form.coding == .gzip }) { return form }
    return forms.first
  }
}

/// The identity of a page: a site, a path as the client wrote it, and the languages if the site has translations.
struct PageKey: Hashable, Sendable {
  let generation: Int
  let site: Int
  let path: [UInt8]
  let languages: Languages
}
