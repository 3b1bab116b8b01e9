import Foundation

/// nginx serving a file: the maximum for this machine and load generator, independent of the server.
final class NginxPeer: PeerServer {
  static let name = "nginx, same bytes"
  static var obstacle: String? {
    findProgram("nginx") == nil ? "nginx is not installed (Debian: nginx-light)" : nil
  }

  let port: Int
  let process: ChildProcess
  let secondsToFirstAnswer: Double

  /// Starts nginx. It serves each text under its name, with the content type of Hearth's responses, and the linked
  /// files with sendfile.
  /// - Throws: ``BenchmarkError`` if nginx is not installed or does not start.
  init(files: [String: String], links: [String: String] = [:]) throws {
    guard let program = findProgram("nginx") else { throw BenchmarkError("nginx is not installed") }
    let directory = try Run.makeDirectory("nginx-\(UUID().uuidString)")
    for (name, text) in files {
      try text.write(toFile: "\(directory)/\(name)", atomically: false, encoding: .utf8)
    }
    for (name, path) in links {
      try FileManager.default.createSymbolicLink(atPath: "\(directory)/\(name)", withDestinationPath: path)
    }
    let port = try LoadClient.freePort()
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(directory)/\($0);" }
    let configuration = """
      daemon off; worker_processes 2; pid \(directory)/pid; error_log \(directory)/errors;
      events { worker_connections 1024; }
      http {
        access_log off; sendfile \(links.isEmpty ? "off" : "on"); keepalive_requests 100000000; open_file_cache max=16; types { }
        default_type "application/json; charset=UTF-8"; \(temporary.joined(separator: " "))
        server { listen 127.0.0.1:\(port); root \(directory); }
      }
      """
    try configuration.write(toFile: "\(directory)/nginx.conf", atomically: false, encoding: .utf8)
    let ready = files.keys.first ?? ""
    let nginx = [program, "-p", directory, "-c", "\(directory)/nginx.conf", "-e", "\(directory)/errors"]
    // The worker processes otherwise drop root and cannot read a private folder.
    let asRoot = geteuid() == 0 ? ["-g", "user root;"] : []
    let launch = try Launch(port: port, readyPath: "/\(ready)", nginx + asRoot)
    (self.port, process, secondsToFirstAnswer) = (port, launch.process, launch.seconds)
  }
}
