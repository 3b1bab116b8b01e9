import Files
import GatewayCore
import Transport

/// A row of Cloud Storage's API for buckets and objects, which a request reaches directly or as a part of a batch.
struct CloudOperation: Sendable {
  typealias Run = @Sendable (CloudStorageHandler, CloudPath, borrowing HTTPRequest) throws -> Void

  let methods: HTTPMethods
  /// The paths after `…/b`.
  private let paths: [String]
  let run: Run

  private init(_ methods: HTTPMethods, _ paths: [String], _ run: @escaping Run) {
    self.methods = methods
    self.paths = paths
    self.run = run
  }

  /// The paths with each of the prefixes that clients use.
  var routePaths: [String] {
    ["/storage/v1/b", "/download/storage/v1/b", "/b"].flatMap { prefix in paths.map { prefix + $0 } }
  }

  /// The rows, in order. Some clients do not encode the slashes of names, so a name may be the rest of a path.
  static let all: [CloudOperation] = [
    CloudOperation(.get, buckets) { handler, _, _ in try CloudBuckets(handler.storageRequest).list() },
    CloudOperation(.post, buckets) { handler, _, request in
      try CloudBuckets(handler.storageRequest).make(BucketChange(request.body))
    },
    CloudOperation([.get, .head], bucket) { handler, path, _ in
      try CloudBuckets(handler.storageRequest).get(path.text(0))
    },
    CloudOperation([.patch, .put], bucket) { try CloudBuckets($0.storageRequest).change($1.text(0), $2) },
    CloudOperation(.delete, bucket) { handler, path, _ in
      try CloudBuckets(handler.storageRequest).delete(path.text(0))
    },
    CloudOperation(.get, objects) { handler, path, _ in try handler.list(path.text(0)) },
    CloudOperation(.post, ["/{bucket}/o/{object}/compose"]) { try $0.compose($1.object(), $2) },
    CloudOperation(.post, ["/{bucket}/o/{object}/moveTo/o/{target}"]) { handler, path, _ in
      try handler.move(path.object(), to: ObjectName(checking: path.text(0), path.text(2)))
    },
    CloudOperation(.post, ["/{bucket}/o/{object}/copyTo/b/{bucket}/o/{target}"]) {
      try $0.copy($1.object(), to: ObjectName(checking: $1.text(2), $1.text(3)), $2, isRewrite: false)
    },
    CloudOperation(.post, ["/{bucket}/o/{object}/rewriteTo/b/{bucket}/o/{target}"]) {
      try $0.copy($1.object(), to: ObjectName(checking: $1.text(2), $1.text(3)), $2, isRewrite: true)
    },
    CloudOperation(.all, ["/{bucket}/o/{object}/acl/{path...}", "/{bucket}/o/{object}/iam/{path...}"]) {
      handler, _, request in
      handler.handleAccess(request)
    },
    CloudOperation([.get, .head], object) { try $0.get($1.longObject(), $2) },
    CloudOperation([.patch, .put], object) { try $0.change($1.longObject(), $2) },
    CloudOperation(.delete, object) { try $0.delete($1.longObject(), $2) },
    CloudOperation(.all, ["/{bucket}/", "/{bucket}/o/", "/{bucket}/o/{path...}"]) { handler, _, _ in
      handler.storageRequest.failUnknown()
    },
    CloudOperation(.all, ["/{bucket}/{kind}", "/{bucket}/{kind}/{path...}"]) { handler, path, request in
      if try path.text(1).isEmpty { return handler.storageRequest.failUnknown() }
      handler.handleAccess(request)
    },
    CloudOperation(.all, ["/{path...}"]) { handler, _, _ in handler.storageRequest.failUnknown() },
  ]

  private static let buckets = ["", "/"]
  private static let bucket = ["/{bucket}", "/{bucket}/"]
  private static let objects = ["/{bucket}/o", "/{bucket}/o/"]
  private static let object = ["/{bucket}/o/{object...}"]
}

/// The parts of a path that a ``CloudOperation`` captures. It borrows the request.
struct CloudPath {
  private let parts: [UnsafeRawBufferPointer]

  init(_ request: borrowing HTTPRequest, _ call: RoutedCall) {
    parts = [
      call.part(0, of: request), call.part(1, of: request), call.part(2, of: request), call.part(3, of: request),
    ]
  }

  /// Reads the parts of a path that was matched without a call.
  init(_ request: borrowing HTTPRequest, _ match: RouteMatch) {
    let target = request.target
    parts = (0..<RouteMatch.partsMax).map { index in
      let part = match[index]
      return UnsafeRawBufferPointer(rebasing: target[Int(part.start)..<Int(part.start + part.count)])
    }
  }

  /// Returns a part, decoded.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the percent-encoding is malformed.
  func text(_ index: Int) throws -> String { try RoutedCall.decoded(parts[index]) }

  /// The object that the first two parts name.
  ///
  /// - Throws: ``FilesError`` if the name is not valid.
  func object() throws -> ObjectName { try ObjectName(checking: text(0), text(1)) }

  /// The object whose name is all segments of the second part.
  ///
  /// - Throws: ``FilesError`` if the name is not valid.
  func longObject() throws -> ObjectName {
    var segments: [String] = []
    for part in parts[1].split(separator: UInt8(ascii: "/")) {
      segments.append(try RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: part)))
    }
    return try ObjectName(checking: text(0), segments.joined(separator: "/"))
  }
}
