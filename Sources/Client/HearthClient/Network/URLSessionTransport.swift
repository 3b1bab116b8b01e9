public import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A transport over HTTP that uses `URLSession`.
///
/// Requests share connections. Each stream has its own connection, so that listeners do not block requests.
public final class URLSessionTransport: HearthTransport {
  private let base: String
  private let session: URLSession

  /// The longest silence of a stream. The server sends something every 25 seconds; after a longer silence it is
  /// considered unreachable.
  private static let streamSilenceSecondsMax = 70.0

  /// A transport to the server at `url`, such as `https://db.example.com`, or `https://example.com/hearth` behind a
  /// proxy.
  /// - Parameter timeoutSeconds: how long a request may wait for the next byte of its response.
  public init(url: URL, timeoutSeconds: Double = 60) {
    var base = url.absoluteString
    while base.hasSuffix("/") { base.removeLast() }
    self.base = base
    session = URLSession(configuration: Self.configuration(timeoutSeconds: timeoutSeconds))
  }

  deinit { session.finishTasksAndInvalidate() }

  /// Sends a request and returns the complete response.
  /// - Throws: ``HearthClientError`` if no exchange takes place, `CancellationError` if the task is cancelled.
  public func send(_ request: HearthRequest) async throws -> HearthResponse {
    do {
      let (data, response) = try await session.data(for: try urlRequest(request))
      let head = try Self.head(of: response)
      return HearthResponse(status: head.status, headers: head.headers, body: data)
    } catch {
      throw Self.failure(error)
    }
  }

  /// Sends a request and returns the response once its headers have arrived.
  /// - Throws: ``HearthClientError`` if no exchange takes place, `CancellationError` if the task is cancelled.
  public func open(_ request: HearthRequest) async throws -> HearthStream {
    let exchange = StreamedExchange()
    let session = URLSession(
      configuration: Self.configuration(timeoutSeconds: Self.streamSilenceSecondsMax), delegate: exchange,
      delegateQueue: nil)
    let task = session.dataTask(with: try urlRequest(request))
    // The session retains its delegate, and is released after its only task has ended.
    session.finishTasksAndInvalidate()
    let (body, pieces) = AsyncThrowingStream<Data, any Error>.makeStream(
      bufferingPolicy: .bufferingOldest(StreamedExchange.waitingPiecesMax))
    pieces.onTermination = { _ in task.cancel() }
    return try await withTaskCancellationHandler {
      let head = try await withCheckedThrowingContinuation { exchange.begin($0, pieces, task) }
      return HearthStream(status: head.status, headers: head.headers, body: body)
    } onCancel: {
      task.cancel()
    }
  }

  /// Sends a request and writes the content of the response to a file. `URLSession` reads no faster than it writes.
  ///
  /// `URLSession` first writes to a file in the temporary directory. On Linux it leaves that file behind if the
  /// download fails.
  /// - Throws: ``HearthClientError`` if no exchange takes place, `CancellationError` if the task is cancelled, or
  ///   an error of Foundation if the file cannot be written.
  public func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse {
    let task = Locked<URLSessionDownloadTask?>(nil)
    let request = try urlRequest(request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let started = session.downloadTask(with: request) { written, response, error in
          continuation.resume(with: Result { try Self.keep(written, of: response, error, at: file) })
        }
        task.withLock { $0 = started }
        // If the task was cancelled before this line, `onCancel` had no download to cancel.
        if Task.isCancelled { started.cancel() }
        started.resume()
      }
    } onCancel: {
      task.withLock { $0 }?.cancel()
    }
  }

  /// Moves the downloaded file to `file` before `URLSession` deletes it.
  private static func keep(
    _ written: URL?, of response: URLResponse?, _ error: (any Error)?, at file: URL
  ) throws -> HearthResponse {
    if let error { throw failure(error) }
    guard let written else {
      throw HearthClientError(.network, "The connection closed before the response was complete.")
    }
    defer { try? FileManager.default.removeItem(at: written) }
    let head = try head(of: response)
    var result = HearthResponse(status: head.status, headers: head.headers)
    if head.status < 400 {
      try FileManager.default.moveItem(at: written, to: file)
    } else {
      let handle = try FileHandle(forReadingFrom: written)
      defer { try? handle.close() }
      result.body = try handle.read(upToCount: HearthStream.errorBytesMax) ?? Data()
    }
    return result
  }

  private static func configuration(timeoutSeconds: Double) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = timeoutSeconds
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.urlCache = nil
    configuration.httpShouldSetCookies = false
    return configuration
  }

  private func urlRequest(_ request: HearthRequest) throws -> URLRequest {
    guard let url = URL(string: base + request.target) else {
      throw HearthClientError(.invalidArgument, "\(base + request.target) is not a valid URL.")
    }
    var result = URLRequest(url: url)
    result.httpMethod = request.method
    result.httpBody = request.body
    for (name, value) in request.headers { result.setValue(value, forHTTPHeaderField: name) }
    return result
  }

  fileprivate static func head(of response: URLResponse?) throws -> StreamedExchange.Head {
    guard let response = response as? HTTPURLResponse else {
      throw HearthClientError(.network, "The server did not send an HTTP response.")
    }
    var headers: [String: String] = [:]
    for (name, value) in response.allHeaderFields {
      if let name = name as? String, let value = value as? String { headers[name.lowercased()] = value }
    }
    return (response.statusCode, headers)
  }

  fileprivate static func failure(_ error: any Error) -> any Error {
    if error is HearthClientError || error is CancellationError { return error }
    if (error as? URLError)?.code == .cancelled { return CancellationError() }
    return HearthClientError(.network, description(of: error))
  }
}

/// Returns a description of an error. On Linux, the system's own description is only a number.
private func description(of error: any Error) -> String {
  switch (error as? URLError)?.code {
  case .timedOut: "The server took too long to respond."
  case .cannotConnectToHost: "Cannot connect to the server."
  case .cannotFindHost, .dnsLookupFailed: "The host name of the server cannot be resolved."
  case .networkConnectionLost: "The connection was lost."
  case .notConnectedToInternet: "This device is not connected to a network."
  case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate:
    "The server's certificate is not trusted."
  default: error.localizedDescription
  }
}

/// A running exchange: receives the headers of a response, then the pieces of its body.
private final class StreamedExchange: NSObject, URLSessionDataDelegate {
  typealias Head = (status: Int, headers: [String: String])

  /// The greatest number of pieces that wait for the reader. A slower reader loses the exchange.
  static let waitingPiecesMax = 16_384

  private struct State {
    var head: CheckedContinuation<Head, any Error>?
    var pieces: AsyncThrowingStream<Data, any Error>.Continuation?
  }

  private let state = Locked(State())

  func begin(
    _ head: CheckedContinuation<Head, any Error>, _ pieces: AsyncThrowingStream<Data, any Error>.Continuation,
    _ task: URLSessionDataTask
  ) {
    state.withLock { $0 = State(head: head, pieces: pieces) }
    task.resume()
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    let head = takeHead()
    do {
      head?.resume(returning: try URLSessionTransport.head(of: response))
      completionHandler(.allow)
    } catch {
      head?.resume(throwing: error)
      completionHandler(.cancel)
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let pieces = state.withLock { $0.pieces }
    if case .dropped? = pieces?.yield(data) {
      pieces?.finish(
        throwing: HearthClientError(.resourceExhausted, "The stream was closed because its reader is too slow."))
      dataTask.cancel()
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let failure = error.map(URLSessionTransport.failure)
    takeHead()?.resume(
      throwing: failure
        ?? HearthClientError(.network, "The connection closed before the response was complete."))
    let pieces = state.withLock { state in
      defer { state.pieces = nil }
      return state.pieces
    }
    pieces?.finish(throwing: failure)
  }

  private func takeHead() -> CheckedContinuation<Head, any Error>? {
    state.withLock { state in
      defer { state.head = nil }
      return state.head
    }
  }
}
