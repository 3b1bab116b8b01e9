import Basics
import DatabaseService
import GatewayCore
import Hosting
import Transport

/// Responds to requests with the files of sites.
///
/// A page that is known is sent from memory on the loop. Otherwise a worker looks for its file, so that a slow disk
/// does not delay other requests. A page is known for ``HostingLimits/knownMillisecondsMax``; after that, the next
/// request sees what has changed.
final class SiteResponder: Sendable {
  private static let workers = BoundedWorkers(
    "hosting", threads: WorkerLimits.hostingThreadsMax, unfinishedMax: WorkerLimits.hostingUnfinishedMax)

  private static let openFiles = OpenFileBudget()

  private let sites: HostedSites
  private let table = PageTable()

  init(_ sites: HostedSites) { self.sites = sites }

  /// One request to one site.
  private struct Call: Sendable {
    let key: PageKey
    let site: Site
    let request: HostedRequest
    let responder: Responder
    /// Whether the request was looked up again, because its file changed while it was opened.
    var isRepeated = false
  }

  /// Whether a site responds to requests with a `Host` field.
  func hasSite(for request: borrowing HTTPRequest) -> Bool {
    sites.current.number(ofHost: request.header("host")) != nil
  }

  /// Responds to a request whose path, as the client wrote it, is `path`. Call it on the loop.
  func respond(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder) {
    let current = sites.current
    guard let number = current.number(ofHost: request.header("host")) else {
      return responder.sendText(404, "Not Found\n")
    }
    let site = current.sites[number]
    let languages =
      site.isTranslated
      ? Languages(
        acceptLanguage: request.text("accept-language"), country: request.text("x-country-code"),
        cookie: request.text("cookie")) : .none
    let hosted = HostedRequest(request)
    let now = responder.exchange.loop.nowMilliseconds
    if let page = table.page(current.generation, number, path, languages, now: now), page.isInMemory {
      return send(page, hosted, responder)
    }
    let key = PageKey(generation: current.generation, site: number, path: Array(path), languages: languages)
    find(Call(key: key, site: site, request: hosted, responder: responder))
  }

  /// Finds the page of a request, on a worker, and sends it.
  private func find(_ call: Call) {
    let loop = call.responder.exchange.loop
    let now = loop.nowMilliseconds
    let key = call.key
    if let page = key.path.withUnsafeBytes({ table.page(key.generation, key.site, $0, key.languages, now: now) }) {
      return finish(call, .success(page))
    }
    let joined = table.join(key, now: now) { result in
      call.responder.onLoop { self.finish(call, result) }
    }
    switch joined {
    case .first: break
    case .waits: return
    case .refused: return fail(.busy, call.responder)
    }
    let isAccepted = Self.workers.run {
      let result = Self.look(call)
      let waiters = self.table.finish(key, result, now: now)
      call.responder.onLoop { self.finish(call, result) }
      for waiter in waiters { waiter(result) }
    }
    guard !isAccepted else { return }
    let failure = Result<HostedPage, SiteFailure>.failure(.busy)
    for waiter in table.finish(key, failure, now: now) { waiter(failure) }
    finish(call, failure)
  }

  private static func look(_ call: Call) -> Result<HostedPage, SiteFailure> {
    guard let path = call.key.path.withUnsafeBytes({ SitePath(decoding: $0) }) else {
      return .success(HostedPage(.notFound(headers: []), isTranslated: false))
    }
    do throws(SiteFailure) {
      let response = try call.site.response(to: path, call.key.languages)
      return .success(HostedPage(response, isTranslated: call.site.isTranslated))
    } catch { return .failure(error) }
  }

  /// Sends the result of a look-up. Call it on the loop.
  private func finish(_ call: Call, _ result: Result<HostedPage, SiteFailure>) {
    switch result {
    case .success(let page):
      if page.isInMemory { send(page, call.request, call.responder) } else { open(page, call) }
    case .failure(let failure): fail(failure, call.responder)
    }
  }

  private func fail(_ failure: SiteFailure, _ responder: Responder) {
    switch failure {
    case .busy: break
    case .noFolder(let reason): responder.exchange.logFailure("the folder of a site: \(reason)", status: 503)
    case .system(let reason): responder.exchange.logFailure("the files of a site: \(reason)", status: 503)
    }
    responder.sendHostedText(503, "The server cannot read the files of this site now. Try again in a moment.\n")
  }

  // MARK: - Responses

  /// Sends a page whose content is in memory, or that has none.
  private func send(_ page: HostedPage, _ request: HostedRequest, _ responder: Responder) {
    let exchange = responder.exchange
    switch page.response {
    case .redirect(let location, let status):
      exchange.respond(
        status: status,
        headers: { headers in
          headers.add("Location", Self.adding(request.query, to: location))
          if status == 301 || status == 308 { headers.add("Cache-Control", HostedPage.cacheControl) }
        }, compressible: false, body: { _ in })
    case .unserved(let service):
      responder.sendHostedText(
        501, "This path is a rewrite to \"\(service)\" in firebase.json, which this server does not have.\n")
    case .notFound(let added):
      exchange.respond(
        status: 404,
        headers: { headers in
          headers.add("Content-Type", "text/plain; charset=utf-8")
          for header in added where header.name.lowercased() != "content-type" {
            headers.add(name: header.name, value: header.value)
          }
        }, compressible: false, body: { $0.append(contentsOf: "Not Found\n".utf8) })
    case .file(let file, let status, _):
      guard let form = page.form(accepting: request.codings), let bytes = form.form.bytes else {
        return fail(.busy, responder)
      }
      guard let part = begin(page, form, file, status, request, responder) else { return }
      let head = Self.head(form, part, responder)
      guard part.range.count > HostingLimits.pieceBytesMax else {
        return exchange.respond(
          status: part.status, headers: head, compressible: false,
          body: { out in bytes.withUnsafeBufferPointer { out.append(contentsOf: $0[part.range]) } })
      }
      exchange.stream(
        status: part.status, headers: head, contentLength: part.range.count,
        from: MemoryBody(bytes, part.range, of: form.form.content))
    }
  }

  /// The part of a representation that a response contains.
  private struct Part {
    let status: Int
    let range: Range<Int>
    let size: Int
  }

  /// Returns the part to send, or `nil` after a response without content.
  private func begin(
    _ page: HostedPage, _ form: HostedPage.Form, _ file: SiteFile, _ status: Int, _ request: HostedRequest,
    _ responder: Responder
  ) -> Part? {
    let size = form.form.size
    guard status == 200 else { return Part(status: status, range: 0..<size, size: size) }
    if request.isCurrent(etag: form.form.etag, modifiedSeconds: file.modifiedSeconds) {
      responder.exchange.respond(status: 304, headers: { $0.add(form.validators) }, body: { _ in })
      return nil
    }
    switch request.part(ofSize: size, etag: form.form.etag, lastModified: page.lastModified) {
    case .all: return Part(status: 200, range: 0..<size, size: size)
    case .part(let range): return Part(status: 206, range: range, size: size)
    case .absent:
      responder.exchange.respond(
        status: 416,
        headers: { headers in
          headers.add(form.validators)
          headers.add("Content-Range", "bytes */\(size)")
        }, compressible: false, body: { _ in })
      return nil
    }
  }

  private static func head(_ form: HostedPage.Form, _ part: Part, _ responder: Responder) -> (inout HeaderWriter) ->
    Void
  {
    { headers in
      headers.add(form.fields)
      if part.status == 206 {
        headers.add("Content-Range", "bytes \(part.range.lowerBound)-\(part.range.upperBound - 1)/\(part.size)")
      }
    }
  }

  /// Opens the file of a page on a worker and sends it from there.
  private func open(_ page: HostedPage, _ call: Call) {
    guard case .file(let file, let status, _) = page.response,
      let form = page.form(accepting: call.request.codings), form.form.bytes == nil
    else { return send(page, call.request, call.responder) }
    guard let part = begin(page, form, file, status, call.request, call.responder) else { return }
    guard let lease = Self.openFiles.take() else { return fail(.busy, call.responder) }
    let isAccepted = Self.workers.run {
      do throws(SiteFailure) {
        let opened = try call.site.open(form.form)
        call.responder.onLoop { self.stream(opened, lease, form, part, call) }
      } catch {
        call.responder.onLoop { self.fail(error, call.responder) }
      }
    }
    if !isAccepted { fail(.busy, call.responder) }
  }

  private func stream(
    _ opened: OpenFile?, _ lease: OpenFileBudget.Lease, _ form: HostedPage.Form, _ part: Part, _ call: Call
  ) {
    guard let opened else {
      // The file has changed since the look-up, so look again.
      guard !call.isRepeated else { return fail(.busy, call.responder) }
      table.forget(call.key)
      var again = call
      again.isRepeated = true
      return find(again)
    }
    guard let descriptor = opened.takeDescriptor() else {
      return fail(.system(reason: "no descriptor is left"), call.responder)
    }
    let exchange = call.responder.exchange
    let body = FileBody(
      descriptor: descriptor, offset: part.range.lowerBound, count: part.range.count, isInMemory: false,
      exchange: exchange, lease: lease)
    exchange.stream(
      status: part.status, headers: Self.head(form, part, call.responder), contentLength: part.range.count, from: body)
  }

  /// Returns a URL with the query of the request, before the fragment.
  private static func adding(_ query: String, to location: String) -> String {
    guard !query.isEmpty else { return location }
    let end = location.firstIndex(of: "#") ?? location.endIndex
    let mark = location[..<end].contains("?") ? "&" : "?"
    return location[..<end] + mark + query + location[end...]
  }
}

extension HostedPage {
  /// Whether the response needs no file.
  var isInMemory: Bool { forms.allSatisfy { $0.form.bytes != nil } }
}

extension Responder {
  /// Responds with plain text.
  func sendHostedText(_ status: Int, _ text: String) {
    exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", "text/plain; charset=utf-8")
        headers.add("Cache-Control", "no-store")
      }, compressible: false, body: { $0.append(contentsOf: text.utf8) })
  }
}

/// Part of a content in memory, which is sent in slices as the client takes them. Many clients share the content.
private final class MemoryBody: BodySource {
  private let bytes: [UInt8]
  /// The content counts the bytes as used memory until the body is released.
  private let content: FileContent?
  private var range: Range<Int>

  init(_ bytes: [UInt8], _ range: Range<Int>, of content: FileContent?) {
    self.bytes = bytes
    self.content = content
    self.range = range
  }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    let end = min(range.upperBound, range.lowerBound + 2 * Exchange.sliceBytes)
    bytes.withUnsafeBufferPointer { out.append(contentsOf: $0[range.lowerBound..<end]) }
    range = end..<range.upperBound
    return range.isEmpty ? .finished : .more
  }
}
