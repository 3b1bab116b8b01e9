public import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Reaches a server over HTTP with `URLSession`.
///
/// Calls share connections. A stream has a connection of its own, so that listeners do not starve calls.
public final class URLSessionTransport: HearthTransport {
  private let base: String
  private let session: URLSession

  /// A server says something on a stream every 25 seconds; one that is silent for longer than this is gone.
  private static let streamSilenceSecondsMax = 70.0

  /// Reaches the server at `url`, such as `https://db.example.com` or, behind a proxy, `https://example.com/hearth`.
  /// - Parameter timeoutSeconds: how long a call may wait for the next byte of its answer.
  public init(url: URL, timeoutSeconds: Double = 60) {
    var base = url.absoluteString
    while base.hasSuffix("/") { base.removeLast() }
    self.base = base
    session = URLSession(configuration: Self.configuration(timeoutSeconds: timeoutSeconds))
  }

  deinit { session.finishTasksAndInvalidate() }

  /// Sends a request and returns the whole answer.
  public func send(_ request: HearthRequest) async throws -> HearthResponse {
    do {
      let (data, response) = try await session.data(for: try urlRequest(request))
      let head = try Self.head(of: response)
      return HearthResponse(status: head.status, headers: head.headers, body: data)
    } catch {
      throw Self.failure(error)
    }
  }

  /// Sends a request and returns the answer as soon as its head is there.
  public func open(_ request: HearthRequest) async throws -> HearthStream {
    let exchange = StreamedExchange()
    let session = URLSession(
      configuration: Self.configuration(timeoutSeconds: Self.streamSilenceSecondsMax), delegate: exchange,
      delegateQueue: nil)
    let task = session.dataTask(with: try urlRequest(request))
    // The session holds its delegate, and goes when its only task has ended.
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

  /// Sends a request and writes the content of the answer into a file. `URLSession` reads no faster than it writes.
  ///
  /// It writes into the temporary directory first. On Linux it leaves that file behind where a download breaks off.
  public func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse {
    let task = Mutex<URLSessionDownloadTask?>(nil)
    let request = try urlRequest(request)
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let started = session.downloadTask(with: request) { written, response, error in
          continuation.resume(with: Result { try Self.keep(written, of: response, error, at: file) })
        }
        task.withLock { $0 = started }
        // A task that was cancelled before finds nothing to cancel.
        if Task.isCancelled { started.cancel() }
        started.resume()
      }
    } onCancel: {
      task.withLock { $0 }?.cancel()
    }
  }

  /// Takes what a download has written, before it goes.
  private static func keep(
    _ written: URL?, of response: URLResponse?, _ error: (any Error)?, at file: URL
  ) throws -> HearthResponse {
    if let error { throw failure(error) }
    guard let written else { throw HearthClientError(.network, "The connection ended before the answer.") }
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
      throw HearthClientError(.invalidArgument, "\(base + request.target) is no URL.")
    }
    var result = URLRequest(url: url)
    result.httpMethod = request.method
    result.httpBody = request.body
    for (name, value) in request.headers { result.setValue(value, forHTTPHeaderField: name) }
    return result
  }

  fileprivate static func head(of response: URLResponse?) throws -> StreamedExchange.Head {
    guard let response = response as? HTTPURLResponse else {
      throw HearthClientError(.network, "The answer is not one of HTTP.")
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

/// What to tell people; on Linux the system's own text is a number.
private func description(of error: any Error) -> String {
  switch (error as? URLError)?.code {
  case .timedOut: "The server took too long to answer."
  case .cannotConnectToHost: "Nobody answers at the server's address."
  case .cannotFindHost, .dnsLookupFailed: "The server's name is not known."
  case .networkConnectionLost: "The connection broke."
  case .notConnectedToInternet: "There is no connection to the network."
  case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate:
    "The server's certificate is not trusted."
  default: error.localizedDescription
  }
}

/// One answer on its way: its head, then its pieces.
private final class StreamedExchange: NSObject, URLSessionDataDelegate {
  typealias Head = (status: Int, headers: [String: String])

  /// What waits to be taken, at most; a reader that is slower loses the exchange.
  static let waitingPiecesMax = 16_384

  private struct State {
    var head: CheckedContinuation<Head, any Error>?
    var pieces: AsyncThrowingStream<Data, any Error>.Continuation?
  }

  private let state = Mutex(State())

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
      pieces?.finish(throwing: HearthClientError(.resourceExhausted, "The reader is too slow for what the server sends."))
      dataTask.cancel()
    }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let failure = error.map(URLSessionTransport.failure)
    takeHead()?.resume(throwing: failure ?? HearthClientError(.network, "The connection ended before the answer."))
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
