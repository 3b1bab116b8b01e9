import CCurl
import Glibc

/// One request and its response, as far as it has arrived. libcurl's callbacks read and write it.
final class Transfer {
  let easy: UnsafeMutableRawPointer
  private(set) var response = HTTPClient.Response()
  /// Whether the head of the final response has arrived.
  private(set) var hasHead = false
  /// Whether the transfer has ended, completely or with a ``failure``.
  private(set) var isOver = false
  /// The reason why the response is not complete, once that is known.
  private(set) var failure: HTTPClientError?

  private let request: Request
  private let address: String
  private let url: String
  private let host: String
  private let options: HTTPClient.Options
  private var fields: UnsafeMutablePointer<curl_slist>?
  /// libcurl's description of a failure.
  private let errorText: UnsafeMutablePointer<CChar>
  /// The part of the request body that libcurl has not taken yet.
  private var outgoing: ArraySlice<UInt8> = []
  /// The number of bytes of a body in pieces that `next` has not returned yet.
  private var missingBytes = 0
  /// How often libcurl has begun to send the request. It repeats a request if a kept connection was closed.
  private var beginnings = 0
  /// The time of the last byte in either direction, in milliseconds, and the bytes sent until then.
  private var lastByteMilliseconds = 0
  private var sentBytes = 0

  init(_ request: Request, of client: HTTPClient, _ easy: UnsafeMutableRawPointer) {
    self.request = request
    self.easy = easy
    (address, url, host, options) = (client.address, client.url, client.host, client.options)
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    rewind()
  }

  deinit {
    hearth_curl_easy_cleanup(easy)
    if fields != nil { hearth_curl_slist_free_all(fields) }
    errorText.deallocate()
  }

  /// Returns the body bytes that arrived since the last call. They no longer count toward the limit.
  func takeBody() -> [UInt8] {
    defer { response.body = [] }
    return response.body
  }

  // MARK: Options

  /// Sets libcurl's options.
  /// - Throws: ``HTTPClientError/failed(address:reason:)`` if memory runs out.
  func configure() throws(HTTPClientError) {
    try set(CURLOPT_ERRORBUFFER, errorText)
    try set(CURLOPT_NOSIGNAL, 1)
    try set(CURLOPT_PROTOCOLS_STR, text: "http,https")
    try set(CURLOPT_PROXY, text: "")
    try set(CURLOPT_CONNECTTIMEOUT_MS, options.connectMilliseconds)
    try set(CURLOPT_BUFFERSIZE, 256 << 10)
    try set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
    try set(CURLOPT_HTTP_VERSION, options.usesHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    try set(CURLOPT_SSL_VERIFYPEER, 1)
    try set(CURLOPT_SSL_VERIFYHOST, 2)
    if let file = options.authoritiesFile { try set(CURLOPT_CAINFO, text: file) }
    try check(hearth_curl_set_callbacks(easy, Self.callbacks, Unmanaged.passUnretained(self).toOpaque()))
    try set(CURLOPT_URL, text: url)
    if let socket = options.unixSocket { try set(CURLOPT_UNIX_SOCKET_PATH, text: socket.path) }
    try set(CURLOPT_REQUEST_TARGET, text: request.target)
    if request.method == "HEAD" {
      try set(CURLOPT_NOBODY, 1)
    } else if request.method != "GET" || request.body != nil {
      try set(CURLOPT_CUSTOMREQUEST, text: request.method)
    }
    if let body = request.body {
      try set(CURLOPT_UPLOAD, 1)
      try check(hearth_curl_set_size(easy, CURLOPT_INFILESIZE_LARGE, body.byteCount))
    }
    try setFields()
  }

  private func setFields() throws(HTTPClientError) {
    var lines = request.headers.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
    // A line without a value removes a field that libcurl would add.
    for name in ["Accept", "Expect"]
    where !request.headers.contains(where: { $0.name.lowercased() == name.lowercased() }) {
      lines.append("\(name):")
    }
    for line in lines {
      guard let longer = hearth_curl_slist_append(fields, line) else { throw outOfMemory }
      fields = longer
    }
    try set(CURLOPT_HTTPHEADER, fields)
  }

  private func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
    try check(hearth_curl_set_long(easy, option, value))
  }

  private func set(_ option: CURLoption, text: String) throws(HTTPClientError) {
    try check(text.withCString { hearth_curl_set_pointer(easy, option, $0) })
  }

  private func set(_ option: CURLoption, _ pointer: UnsafeMutableRawPointer?) throws(HTTPClientError) {
    try check(hearth_curl_set_pointer(easy, option, pointer))
  }

  private func check(_ code: CURLcode) throws(HTTPClientError) {
    if code != CURLE_OK { throw .failed(address: address, reason: String(cString: hearth_curl_easy_strerror(code))) }
  }

  private var outOfMemory: HTTPClientError { .failed(address: address, reason: "not enough memory") }

  // MARK: Time

  /// Returns the time until the transfer fails if no further byte is sent or received.
  /// - Throws: ``HTTPClientError/timedOut(address:milliseconds:)`` if that time is over.
  func millisecondsToStall() throws(HTTPClientError) -> Int {
    // libcurl limits the time for the connection.
    guard beginnings > 0 else { return options.connectMilliseconds }
    let sent = hearth_curl_get(easy, CURLINFO_SIZE_UPLOAD_T)
    if sent != sentBytes { noteByte() }
    sentBytes = sent
    let left = lastByteMilliseconds + options.stallMilliseconds - Self.milliseconds
    guard left > 0 else { throw .timedOut(address: address, milliseconds: options.stallMilliseconds) }
    return left
  }

  private func noteByte() { lastByteMilliseconds = Self.milliseconds }

  private static var milliseconds: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
  }

  // MARK: The end

  /// Ends the transfer with libcurl's result.
  func end(_ result: CURLcode) {
    isOver = true
    // A callback may have set the reason.
    guard failure == nil else { return }
    if result != CURLE_OK {
      failure = error(result)
    } else if !hasHead {
      // libcurl accepts a head that breaks off after its first line.
      failure = .closedEarly(address: address)
    }
  }

  private func error(_ code: CURLcode) -> HTTPClientError {
    let reason = reason(code)
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: return .hostNotFound(host: host)
    case CURLE_COULDNT_CONNECT:
      let system = hearth_curl_get(easy, CURLINFO_OS_ERRNO)
      return .notConnected(address: address, reason: system == 0 ? reason : String(cString: strerror(Int32(system))))
    // libcurl limits only the time for the connection.
    case CURLE_OPERATION_TIMEDOUT: return .notConnected(address: address, reason: String(cString: strerror(ETIMEDOUT)))
    case CURLE_PEER_FAILED_VERIFICATION:
      return .certificateRejected(address: address, certificateProblem(reason))
    case CURLE_SSL_CACERT_BADFILE: return .authoritiesUnusable(file: options.authoritiesFile)
    case CURLE_SSL_CONNECT_ERROR:
      return reason.contains("wrong version number")
        ? .notTLS(address: address) : .handshakeFailed(address: address, reason: reason)
    case CURLE_RECV_ERROR where reason.contains("chunked-encoding"): return .malformed(address: address)
    case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_HTTP2,
      CURLE_HTTP2_STREAM:
      return .closedEarly(address: address)
    // A response of HTTP/0.9 has no status line: libcurl takes any other text for one.
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return .malformed(address: address)
    default: return .failed(address: address, reason: reason)
    }
  }

  private func certificateProblem(_ reason: String) -> HTTPClientError.CertificateProblem {
    // OpenSSL's result of the verification, X509_V_ERR_…. libcurl compares the name itself, before it asks for the
    // result, which is still 1 then.
    switch hearth_curl_get(easy, CURLINFO_SSL_VERIFYRESULT) {
    case 0, 1: .otherName(host: host)
    case 9: .notYetValid
    case 10: .expired
    default: .notTrusted(reason: String(reason.split(separator: ": ").last ?? ""))
    }
  }

  private func reason(_ code: CURLcode) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? String(cString: hearth_curl_easy_strerror(code)) : text
  }

  // MARK: Callbacks

  private static var callbacks: hearth_curl_callbacks {
    hearth_curl_callbacks(
      socket: { pointer, _, address in
        guard let transfer = Transfer.at(pointer), let address = address?.pointee, transfer.mayBegin() else {
          return -1
        }
        // Child processes must not inherit the socket.
        return socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
      },
      begin: { pointer, _, _, _, _ in Transfer.at(pointer)?.begin() ?? CURL_PREREQFUNC_ABORT },
      header: { bytes, _, count, pointer in
        Transfer.at(pointer)?.receive(line: UnsafeRawBufferPointer(start: bytes, count: count)) ?? 0
      },
      body: { bytes, _, count, pointer in
        Transfer.at(pointer)?.receive(UnsafeRawBufferPointer(start: bytes, count: count)) ?? 0
      },
      upload: { bytes, _, count, pointer in
        Transfer.at(pointer)?.provide(UnsafeMutableRawBufferPointer(start: bytes, count: count)) ?? 0
      },
      rewind: { pointer, _, _ in
        guard let transfer = Transfer.at(pointer), transfer.request.isRepeatable else { return CURL_SEEKFUNC_FAIL }
        transfer.rewind()
        return CURL_SEEKFUNC_OK
      })
  }

  private static func at(_ pointer: UnsafeMutableRawPointer?) -> Transfer? {
    pointer.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Returns whether libcurl may send the request, or sets the failure. It may not if it sent the request before, and
  /// the response is lost.
  private func mayBegin() -> Bool {
    if beginnings == 0 || options.repeatsRequests && request.isRepeatable { return true }
    failure = .closedEarly(address: address)
    return false
  }

  /// The connection exists, and the request is sent next.
  private func begin() -> Int32 {
    guard mayBegin() else { return CURL_PREREQFUNC_ABORT }
    beginnings += 1
    noteByte()
    return CURL_PREREQFUNC_OK
  }

  /// Receives a line of the head or a trailer. Returns its length.
  private func receive(line: UnsafeRawBufferPointer) -> Int {
    noteByte()
    let whole = String(decoding: line, as: UTF8.self)
    let text = Self.trimmed(whole.utf8[...])
    if !hasHead, text.starts(with: "HTTP/".utf8) {
      // The fields of an interim response (100 Continue) do not belong to the final one.
      let code = text.split(separator: UInt8(ascii: " "), maxSplits: 2).dropFirst().first
      response = HTTPClient.Response(status: code.flatMap { Int(String($0) ?? "") } ?? 0)
    } else if text.isEmpty {
      hasHead = response.status >= 200
    } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
      let value = Self.trimmed(text[text.index(after: colon)...])
      response.headers.append((String(text[..<colon])?.lowercased() ?? "", String(value) ?? ""))
    }
    return line.count
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text.drop { $0 <= UInt8(ascii: " ") }
    while let last = text.last, last <= UInt8(ascii: " ") { text = text.dropLast() }
    return text
  }

  /// Receives bytes of the body. Returns their number, or 0 to end the transfer.
  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    noteByte()
    guard response.body.count + bytes.count <= options.bodyBytesMax else {
      failure = .tooLarge(bytesMax: options.bodyBytesMax)
      return 0
    }
    response.body.append(contentsOf: bytes)
    return bytes.count
  }

  /// Provides the next bytes of the request body. Returns their number.
  private func provide(_ room: UnsafeMutableRawBufferPointer) -> Int {
    if outgoing.isEmpty, missingBytes > 0, case .pieces(_, let next) = request.body {
      outgoing = next()[...]
      missingBytes -= outgoing.count
      guard !outgoing.isEmpty, missingBytes >= 0 else {
        failure = .failed(address: address, reason: "the body of the request ended early")
        return Int(CURL_READFUNC_ABORT)
      }
    }
    let count = min(room.count, outgoing.count)
    room.copyBytes(from: outgoing.prefix(count))
    outgoing = outgoing.dropFirst(count)
    return count
  }

  /// Provides the request body from its start.
  private func rewind() {
    switch request.body {
    case .bytes(let bytes): outgoing = bytes[...]
    case .pieces(let count, _): missingBytes = count
    case nil: break
    }
  }
}
