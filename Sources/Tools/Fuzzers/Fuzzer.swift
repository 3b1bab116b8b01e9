import Archives
import DocumentStore
import FirebaseExport
import FixtureTree
import Hosting
import LogEngine
import PipelineEngine
import PipelineExpressions
import RulesEngine
import Transport
import WireFormat

/// An entry point that accepts any bytes and must neither trap nor hang.
struct Fuzzer: Sendable {
  /// The name for `Fuzzers run NAME`.
  let name: String
  /// One line for `Fuzzers list`.
  let summary: String
  /// The initial inputs.
  let corpus: [[UInt8]]
  /// Tokens of the input's syntax.
  let tokens: [String]
  let run: @Sendable (UnsafeRawBufferPointer) -> Void
  /// Whether the fuzzer is expected to fail. Such a fuzzer proves that failures are noticed.
  var mustFail = false

  /// Every fuzzer, in the order in which `smoke` runs them.
  static let all: [Fuzzer] = [
    Fuzzer(
      name: "protobuf", summary: "documents in protobuf, from clients and as stored", corpus: Corpus.protobuf,
      tokens: [], run: WireFuzz.protobuf),
    Fuzzer(
      name: "messages", summary: "writes, queries and aggregations in protobuf", corpus: Corpus.messages, tokens: [],
      run: WireFuzz.messages),
    Fuzzer(
      name: "json", summary: "JSON of documents and writes", corpus: Corpus.json, tokens: Corpus.jsonTokens,
      run: WireFuzz.json),
    Fuzzer(
      name: "path", summary: "field paths, resource names, timestamps", corpus: Corpus.paths,
      tokens: ["`", "\\", ".", "/", "__", "projects/", "/databases/", "(default)", "T", "Z", ":"], run: WireFuzz.path),
    Fuzzer(
      name: "http", summary: "streams of HTTP/1 requests", corpus: Corpus.http,
      tokens: [
        "\r\n", "\r\n\r\n", "Content-Length: ", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "GET / HTTP/1.1",
      ],
      run: HTTPFuzz.run),
    Fuzzer(
      name: "http2", summary: "input of HTTP/2 clients: frames and compressed fields", corpus: Corpus.http2,
      tokens: [], run: HTTP2Fuzz.run),
    Fuzzer(
      name: "http2-peer", summary: "responses of a peer: frames and compressed fields", corpus: Corpus.http2,
      tokens: [], run: PeerFuzz.run),
    Fuzzer(
      name: "fixture", summary: "fixture trees, `__collections__` trees and document lines", corpus: Corpus.fixtures,
      tokens: Corpus.jsonTokens + ["$collections", "$timestamp", "$fields", "$missing", "__collections__", "$$"],
      run: FixtureFuzz.run),
    Fuzzer(
      name: "firebase-export", summary: "records, entities and metadata of Firebase exports", corpus: Corpus.exports,
      tokens: [], run: ExportFuzz.run),
    Fuzzer(
      name: "archive", summary: "tar, gzip and zip archives", corpus: Corpus.archives, tokens: ["ustar", "../", "PK"],
      run: ArchiveFuzz.run),
    Fuzzer(
      name: "records", summary: "arrays, lines without paths and CSV, also compressed", corpus: Corpus.records,
      tokens: Corpus.jsonTokens + ["\"\"", "\r\n", ",", ";", ":int", ":json", "__id__", "_id", "_seconds", "_path"],
      run: FixtureFuzz.records),
    Fuzzer(
      name: "stored-row", summary: "stored documents, whole and damaged", corpus: Corpus.protobuf, tokens: [],
      run: StoreFuzz.storedRow),
    Fuzzer(
      name: "commit-batch", summary: "batches of the commit log", corpus: Corpus.batches, tokens: [],
      run: CommitBatchFuzz.run),
    Fuzzer(
      name: "ordered-code", summary: "parts of storage keys: ids, numbers, values",
      corpus: Corpus.protobuf + Corpus.paths,
      tokens: ["__id", "__", "\0", "\u{1}"], run: StoreFuzz.orderedCode),
    Fuzzer(
      name: "ruleset", summary: "security rules: parsing, checking, compiling, evaluating", corpus: Corpus.rulesets,
      tokens: Corpus.ruleTokens, run: RulesFuzz.ruleset),
    Fuzzer(
      name: "rule-expression", summary: "conditions of security rules", corpus: Corpus.ruleExpressions,
      tokens: Corpus.ruleTokens, run: RulesFuzz.expression),
    Fuzzer(
      name: "rule-document", summary: "security rules over damaged documents and claims", corpus: Corpus.protobuf,
      tokens: [], run: RulesFuzz.storedDocument),
    Fuzzer(
      name: "pipeline-expression", summary: "expressions of pipelines: checking, compiling, evaluating",
      corpus: Corpus.pipelineExpressions, tokens: [], run: ExpressionFuzz.expression),
    Fuzzer(
      name: "pipeline-row", summary: "expressions of pipelines over damaged documents, and states of accumulators",
      corpus: Corpus.protobuf, tokens: [], run: ExpressionFuzz.storedRow),
    Fuzzer(
      name: "time-zone", summary: "files of the time zone database", corpus: Corpus.timeZones, tokens: [],
      run: ExpressionFuzz.timeZone),
    Fuzzer(
      name: "search", summary: "texts of searches, and documents that they match", corpus: Corpus.searches,
      tokens: ["\"", "-\"", " -", "<b>", "</", ">", "\0", "tacos", "\u{2019}", "\u{301}", "\u{FDFA}", "東京", "ไทย"],
      run: SearchFuzz.search),
    Fuzzer(
      name: "hosting", summary: "firebase.json with the rules of web apps, and paths that they match",
      corpus: Corpus.hosting,
      tokens: Corpus.jsonTokens + Corpus.globTokens + [
        "hosting", "redirects", "rewrites", "headers", "source", "regex",
      ],
      run: HostingFuzz.configuration),
    Fuzzer(
      name: "hosting-path", summary: "paths of requests to web apps, globs and languages", corpus: Corpus.hostedPaths,
      tokens: Corpus.globTokens + ["..", "%2e", "%2F", "%00", "%5c", "//", "q=", "en-US"], run: HostingFuzz.path),
    Fuzzer(
      name: "must-fail", summary: "traps on an input that mutation finds quickly; proves that failures are noticed",
      corpus: [Array("hearth".utf8)], tokens: [],
      run: { bytes in precondition(bytes.isEmpty || bytes[0] == UInt8(ascii: "h"), "found, as it should be") },
      mustFail: true),
  ]
}
