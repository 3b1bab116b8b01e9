import Glibc
import Testing
import TestSupport

@testable import HearthServer

/// The folder of the admin socket: no other user may enter it, replace it or lead it elsewhere.
@Suite struct AdminSocketFolderTests {
  private let directory: TemporaryDirectory
  private var data: String { directory.path }
  private var run: String { directory.file("run") }
  private var file: String { directory.file("run/admin.sock") }

  init() throws {
    directory = try TemporaryDirectory()
    chmod(directory.path, 0o700)
  }

  private func mode(_ path: String) -> mode_t {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  private func reason(_ body: () throws(HearthError) -> Void) -> String {
    do throws(HearthError) { try body() } catch { return error.description }
    return ""
  }

  @Test func theSocketIsForItsOwnerOnly() throws {
    let before = umask(0)
    defer { umask(before) }
    let socket = try AdminSocket(in: data)
    #expect(mode(run) == 0o700 && mode(file) == 0o600)
    #expect(try AdminSocketFolder(of: data)?.hasSocket() == true)
    close(socket.descriptor)
    socket.remove()
    #expect(try AdminSocketFolder(of: data)?.hasSocket() == false)
    #expect(try AdminSocketFolder(of: directory.file("none")) == nil)
  }

  @Test func aSocketOfAKilledServerIsReplaced() throws {
    for _ in 0..<3 { close(try AdminSocket(in: data).descriptor) }
    #expect(try AdminSocketFolder(of: data)?.hasSocket() == true)
  }

  @Test func pathsOfAnyLengthWork() throws {
    var path = directory.path
    for _ in 0..<8 {
      path += "/" + String(repeating: "long-", count: 20)
      mkdir(path, 0o700)
    }
    let socket = try AdminSocket(in: path)
    let folder = try #require(try AdminSocketFolder(of: path))
    #expect(path.utf8.count > 800 && folder.socketPath.utf8.count < 60)
    #expect(try folder.hasSocket())
    close(socket.descriptor)
  }

  @Test(arguments: [0o701, 0o710, 0o704, 0o770, 0o777])
  func aFolderThatOthersMayEnterIsRefused(mode: Int) throws {
    mkdir(run, 0o700)
    chmod(run, mode_t(mode))
    let advice = "users other than its owner may enter \(run), and so become administrators; run `chmod go= \(run)`"
    #expect(reason { () throws(HearthError) in _ = try AdminSocket(in: data) } == advice)
    #expect(reason { () throws(HearthError) in _ = try AdminSocketFolder(of: data) } == advice)
  }

  @Test(arguments: [0o606, 0o660, 0o777, 0o601])
  func aSocketThatOthersMayOpenIsRefused(mode: Int) throws {
    let socket = try AdminSocket(in: data)
    defer { close(socket.descriptor) }
    chmod(file, mode_t(mode))
    let found = reason { () throws(HearthError) in _ = try AdminSocketFolder(of: data)?.hasSocket() }
    #expect(found.hasPrefix("users other than the owner of the server may open \(file)"), "\(found)")
  }

  @Test func aDirectoryThatOthersMayChangeIsRefused() throws {
    chmod(data, 0o777)
    let found = reason { () throws(HearthError) in _ = try AdminSocket(in: data) }
    #expect(found.hasSuffix("run `chmod go-w \(data)`"), "\(found)")
    // Others may read the directory, but not enter the folder.
    chmod(data, 0o755)
    close(try AdminSocket(in: data).descriptor)
  }

  @Test func linksAreNotFollowed() throws {
    let elsewhere = directory.file("elsewhere")
    mkdir(elsewhere, 0o700)
    symlink(elsewhere, run)
    let found = reason { () throws(HearthError) in _ = try AdminSocket(in: data) }
    #expect(found.hasPrefix("\(run) must be a folder, and not a link"), "\(found)")
    unlink(run)
    mkdir(run, 0o700)
    // A link in place of the socket must neither be followed nor removed with its target.
    let victim = try directory.write("victim", "kept")
    symlink(victim, file)
    for outcome in [
      reason { () throws(HearthError) in _ = try AdminSocket(in: data) },
      reason { () throws(HearthError) in _ = try AdminSocketFolder(of: data)?.hasSocket() },
    ] {
      #expect(outcome == "\(file) is not a socket; remove it, and restart the server")
    }
    #expect(try directory.text("victim") == "kept")
    #expect(try directory.fileNames == ["elsewhere", "run", "victim"])
  }

  @Test func aFolderReplacedLaterIsNotUsed() throws {
    let socket = try AdminSocket(in: data)
    defer { close(socket.descriptor) }
    let folder = try #require(try AdminSocketFolder(of: data))
    rename(run, directory.file("moved"))
    mkdir(run, 0o777)
    #expect(try folder.hasSocket(), "the client still sees the folder that it checked")
    #expect(access(folder.socketPath, F_OK) == 0)
  }

  @Test(.needs(.root)) func theFolderOfAnotherUserIsRefused() throws {
    close(try AdminSocket(in: data).descriptor)
    chown(run, 65_534, 65_534)
    // A user could create the folder in a shared directory, before root starts a server there.
    let planted = reason { () throws(HearthError) in _ = try AdminSocketFolder(of: data) }
    #expect(planted.hasPrefix("\(run) belongs to "), "\(planted)")
    // Root may use the directory of another user. The socket in it belongs to root.
    chown(data, 65_534, 65_534)
    #expect(try AdminSocketFolder(of: data)?.hasSocket() == true)
    chown(file, 12_345, 12_345)
    let found = reason { () throws(HearthError) in _ = try AdminSocketFolder(of: data)?.hasSocket() }
    #expect(found.contains("may open \(file)"), "\(found)")
  }
}
