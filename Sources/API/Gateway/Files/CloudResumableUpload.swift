import DatabaseService
import Files
import RulesEngine
import Transport

/// Uploads in several requests, as Cloud Storage's clients send them, and some of Firebase's: `PUT` with
/// `Content-Range` (storage-api.md, section 10).
struct CloudResumableUpload: Sendable {
  let call: StorageRequest

  init(_ call: StorageRequest) { self.call = call }

  /// `bytes a-b/total`, each part of which may be missing.
  struct ContentRange: Sendable {
    /// Where the bytes begin, and how many there are.
    var start: Int?
    var count = 0
    var total: Int?

    init(_ header: String) throws(FilesError) {
      let parts = header.drop { $0 != " " }.dropFirst().split(separator: "/")
      guard header.hasPrefix("bytes "), parts.count == 2 else { throw .invalid("Malformed Content-Range: \(header)") }
      if parts[1] != "*" {
        guard let number = Int(parts[1]), number >= 0 else { throw .invalid("Malformed Content-Range: \(header)") }
        total = number
      }
      if parts[0] != "*" {
        let ends = parts[0].split(separator: "-").map { Int($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first >= 0, last >= first, last < total ?? .max
        else { throw .invalid("Malformed Content-Range: \(header)") }
        start = first
        count = last - first + 1
      }
    }
  }

  /// Answers a request without content: the start, and the end that gives an upload up.
  func handle(_ parts: [String], _ request: borrowing HTTPRequest) throws(FilesError) {
    if request.method == .delete, let id = call.parameters.value("uploadId") {
      return call.work { () throws(FilesError) in
        try call.store.cancelUpload(try call.store.openUpload(id))
      } then: {
        call.sendEmpty(499)
      }
    }
    guard request.method == .post, parts.count == 2, parts[1] == "o" else { return call.failUnknown() }
    try start(parts[0], named: call.parameters.value("name"), request)
  }

  /// Begins an upload to a bucket; `status` is what the dialect answers then. Where a URL was signed for the name, the
  /// metadata, which nobody signed, name no other.
  func start(
    _ bucket: String, named: String?, isSigned: Bool = false, status: Int = 200, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    let metadata = try AttributesReader(request.body)
    if isSigned, let other = metadata.name, !other.utf8.elementsEqual((named ?? "").utf8) {
      throw .invalid("The metadata name another object than the one that the URL was signed for.")
    }
    guard let name = isSigned ? named : metadata.name ?? named else { throw .invalid("Required parameter: name") }
    let isFirebase = call.api == .firebase
    var attributes = ObjectAttributes()
    attributes.contentType = request.text("x-upload-content-type")
    metadata.apply(to: &attributes, keepsTokens: false)
    if isFirebase, attributes.metadata.downloadTokens.isEmpty {
      attributes.metadata.downloadTokens = [DownloadToken.make()]
    }
    var record = UploadRecord(name: try ObjectName(checking: bucket, name), attributes: attributes)
    record.conditions = try ObjectConditions(call.parameters)
    record.declared = metadata.declared
    record.declaredSize = try FirebaseResumableUpload.size(request.text("x-upload-content-length"))
    record.isAdmin = call.isAdmin || !isFirebase
    record.owner = call.uploadOwner(isSigned: isSigned, request)
    try attributes.check()
    if isFirebase {
      try call.authorizer.requireRules(as: call.caller)
      try FirebaseFiles(call).requireEarly(record.name, attributes, sizes: record.declaredSize.map { $0...$0 })
    }
    let path = isFirebase ? "/v0/b" : "/upload/storage/v1/b"
    call.work { [record] () throws(FilesError) in
      try call.store.beginUpload(record, starter: isFirebase ? call.caller : nil)
    } then: { [record] in
      call.sendEmpty(status) { headers in
        headers.add(
          "Location",
          "\(call.origin)\(path)/\(record.name.bucket)/o?uploadType=resumable&upload_id=\(record.id)")
        headers.add("X-GUploader-UploadID", record.id)
      }
    }
  }

  /// What takes a part, or nothing where the client only asks how far the upload is.
  func openBody(_ id: String, _ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let range = try request.text("content-range").map { (text) throws(FilesError) in try ContentRange(text) }
    let hashes = try DeclaredChecksums(request, isContent: false)
    let starter = isNobody(request) ? call.store.starter(ofUpload: id) as? Caller : nil
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in
        try Self.requireNotRevoked(starter)
        let upload = try call.store.openUpload(id)
        let size = upload.incoming.size
        let start = range == nil ? 0 : range?.start
        if let start, start != size {
          call.store.endUpload(upload)
          throw .wrongOffset(expected: size, given: start)
        }
        var file = UploadBody.OpenUploadFile(incoming: upload.incoming, upload: upload)
        if let range {
          file.limit = (size + range.count, .invalid("More bytes came than Content-Range says."))
        }
        if let size = upload.record.declaredSize, file.limit.map({ $0.bytes > size }) ?? true {
          file.limit = (size, .invalid("More bytes came than the upload was announced with."))
        }
        if upload.record.declaredSize == nil, !upload.record.isAdmin, let unknown = FirebaseFiles(call).unknownLimit,
          file.limit.map({ $0.bytes > unknown.bytes }) ?? true
        {
          file.limit = unknown
        }
        return file
      },
      finish: { (file, _) throws(FilesError) in
        guard let upload = file.upload else { throw .noSuchUpload }
        let size = upload.incoming.size
        if range == nil || range?.total == size {
          let object = try finish(upload, hashes, as: starter)
          return { send(object) }
        }
        do throws(FilesError) {
          if range?.start != nil { try call.store.saveUpload(upload) }
          if let total = range?.total, size > total { throw .invalid("More bytes came than Content-Range says.") }
        } catch {
          call.store.endUpload(upload)
          throw error
        }
        call.store.endUpload(upload)
        return { sendProgress(size) }
      },
      interrupt: { file in
        if let upload = file.upload { call.store.endUpload(upload) }
      },
      fail: { error in
        switch error {
        case .wrongOffset(let expected, _): sendProgress(expected)
        case .uploadOver: answerAgain(id)
        default: call.fail(error)
        }
      })
    return UploadBody(call.responder.exchange, plan)
  }

  /// Says how many bytes have come; the status means "go on" here, and redirects nobody as there is no `Location`.
  private func sendProgress(_ size: Int) {
    call.sendEmpty(308) { headers in
      if size > 0 { headers.add("Range", "bytes=0-\(size - 1)") }
    }
  }

  private func answerAgain(_ id: String) {
    call.work { () throws(FilesError) in
      let record = try call.store.upload(id)
      guard case .finished(let generation) = record.state, let object = try call.store.object(record.name),
        object.generation == generation
      else { throw .noSuchUpload }
      return object
    } then: {
      send($0)
    }
  }

  /// Refuses who began an upload and might not begin one now: that may be days ago. A token's age does not matter,
  /// as nobody sends another.
  private static func requireNotRevoked(_ starter: Caller?) throws(FilesError) {
    guard case .user(let auth?)? = starter, let revocationReason = auth.revocationCheck?.revocationReason else { return }
    throw .denied("Whoever began the upload may not go on: \(revocationReason).")
  }

  private func finish(
    _ upload: OpenUpload, _ hashes: DeclaredChecksums, as starter: Caller?
  ) throws(FilesError) -> StoredObject {
    let caller = starter ?? call.caller
    let declared: DeclaredChecksums
    do throws(FilesError) {
      // Much may have happened while the content came.
      try Self.requireNotRevoked(starter)
      declared = try hashes.and(upload.record.declared)
    } catch {
      try call.store.cancelUpload(upload)
      throw error
    }
    return try call.store.finishUpload(upload, declared: declared) { (before, after) throws(FilesError) in
      if upload.record.isAdmin { return }
      try call.authorizer.require(.create, upload.record.name, as: caller, before: before, after: after)
    }
  }

  private func send(_ object: StoredObject) {
    if call.api == .firebase { FirebaseFiles(call).send(object) } else { CloudFiles(call).send(object) }
  }

  private func isNobody(_ request: borrowing HTTPRequest) -> Bool {
    call.api == .firebase && request.header("authorization") == nil
  }
}
