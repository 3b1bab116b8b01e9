import Foundation

extension Benchmark {
  static let pipelines = Benchmark(
    name: "pipelines",
    summary: "pipelines over 1,000,000 documents, compared with PostgreSQL 15 and jsonb",
    meaning: """
      The median of five runs, which alternate between the servers. Both contain the same 1,000,000 orders of 100,000
      customers: Hearth as documents with its automatic indexes and an index on status and amount, PostgreSQL as a column
      of type jsonb with an index for each query and statistics. Hearth's time is that of a POST of executePipeline;
      PostgreSQL's is reported by psql. Hearth divides a scan that groups among as many threads as there are processors,
      PostgreSQL among up to two more worker processes; the CPU time is that of all of them.
      """
  ) {
    if let obstacle = PostgresPeer.obstacle {
      var table = ResultTable("work", "Hearth")
      table.notes.append("PostgreSQL skipped: \(obstacle)")
      return table
    }
    let orders = try OrderFiles()
    Run.progress("pipelines: importing into Hearth")
    let data = try Run.makeDirectory("pipelines-data")
    for (file, collection) in [(orders.orders, "orders"), (orders.customers, "customers")] {
      let importing = try ChildProcess(
        [
          "\(Run.productsDirectory)/hearth", "import", file, "--data", data, "--project", "bench", "--collection",
          collection, "--id", "__id__",
        ])
      guard importing.wait(seconds: 600) == 0 else { throw BenchmarkError("hearth import failed") }
    }
    let indexes = "\(try Run.makeDirectory("pipelines-indexes"))/firestore.indexes.json"
    try OrderFiles.indexes.write(toFile: indexes, atomically: true, encoding: .utf8)
    let hearth = try HearthPeer(data: data, ["--indexes", indexes])
    defer { hearth.process.stop() }
    Run.progress("pipelines: importing into PostgreSQL")
    let postgres = try PostgresPeer()
    defer { postgres.process.stop() }
    try orders.fill(postgres)
    Run.progress("pipelines: waiting for the index of Hearth")
    for _ in 0..<600 {
      let reply = try LoadClient.send(
        "GET", port: hearth.port, "/v1/projects/bench/databases/(default)/collectionGroups/-/indexes", body: "",
        headers: ["Authorization": "Bearer owner"])
      guard reply.body.contains("CREATING") else { break }
      usleep(1_000_000)
    }

    var table = ResultTable(
      "work", "Hearth ms", "PostgreSQL ms", "Hearth against it", "Hearth CPU ms", "PostgreSQL CPU ms", "mark")
    for work in PipelineWork.all {
      Run.progress("pipelines: \(work.name)")
      // The first run fills the caches of both.
      var (ours, theirs) = ([Double](), [Double]())
      var (ourCPU, theirCPU) = (0.0, 0.0)
      for round in 0...5 {
        let cpu = (hearth.process.cpuSeconds, postgres.process.cpuSeconds)
        let watch = Stopwatch()
        let reply = try LoadClient.send(
          "POST", port: hearth.port, "/v1/projects/bench/databases/(default)/documents:executePipeline",
          body: work.body, headers: ["Authorization": "Bearer owner"])
        let seconds = watch.seconds
        guard reply.status == 200 else { throw BenchmarkError("\(work.name): \(reply.body)") }
        let (result, theirSeconds) = try postgres.time(work.sql)
        guard work.agrees(reply.body, result) else {
          throw BenchmarkError("\(work.name): Hearth says \(reply.body.suffix(300)), PostgreSQL \(result.suffix(300))")
        }
        guard round > 0 else { continue }
        ours.append(seconds)
        theirs.append(theirSeconds)
        ourCPU += hearth.process.cpuSeconds - cpu.0
        theirCPU += postgres.process.cpuSeconds - cpu.1
      }
      let (ourMedian, theirMedian) = (ours.sorted()[2], theirs.sorted()[2])
      table.add(
        work.name, Format.tenths(ourMedian * 1000), Format.tenths(theirMedian * 1000),
        Format.ratio(theirMedian, to: ourMedian), Format.count(ourCPU / 5 * 1000), Format.count(theirCPU / 5 * 1000),
        work.mark)
    }
    return table
  }
}

/// The documents of the benchmark in files, one for each server and collection.
private struct OrderFiles {
  let orders: String
  let customers: String
  private let directory: String
  /// The index file of Hearth.
  static let indexes = """
    {"indexes": [{"collectionGroup": "orders", "queryScope": "COLLECTION", "fields": [
      {"fieldPath": "status", "order": "ASCENDING"}, {"fieldPath": "amount", "order": "DESCENDING"}]}]}
    """
  private static let ordersCount = 1_000_000
  private static let customersCount = 100_000

  init() throws {
    Run.progress("pipelines: writing 1,000,000 documents")
    directory = try Run.makeDirectory("pipelines-files")
    chmod(directory, 0o755)
    chmod(Run.scratchDirectory, 0o755)
    (orders, customers) = ("\(directory)/orders.ndjson", "\(directory)/customers.ndjson")
    var random = SampleGenerator(state: 7)
    let states = ["new", "paid", "packed", "sent", "returned"]
    try Self.write(Self.ordersCount, orders, "\(directory)/orders.tsv") { number in
      let bits = random.next()
      return """
        "customer":"c\(number * 7919 % Self.customersCount)","category":"category \(bits % 50)",\
        "status":"\(states[Int(bits >> 8) % 5])","amount":\(bits >> 20 % 1000 + 1),\
        "score":\(Double(bits >> 44) / 16 + 0.03125),"title":"Order number \(number)"
        """
    }
    try Self.write(Self.customersCount, customers, "\(directory)/customers.tsv") { number in
      "\"name\":\"c\(number)\",\"region\":\"region \(random.next() % 20)\""
    }
  }

  private static func write(_ count: Int, _ lines: String, _ table: String, _ members: (Int) -> String) throws {
    var (documents, rows) = ("", "")
    documents.reserveCapacity(count * 200)
    rows.reserveCapacity(count * 200)
    for number in 0..<count {
      let members = members(number)
      documents += "{\"__id__\":\"d\(number)\",\(members)}\n"
      rows += "d\(number)\t{\(members)}\n"
    }
    try documents.write(toFile: lines, atomically: false, encoding: .utf8)
    try rows.write(toFile: table, atomically: false, encoding: .utf8)
  }

  func fill(_ postgres: PostgresPeer) throws {
    try postgres.run([
      "create table orders (id text primary key, d jsonb not null)",
      "create table customers (id text primary key, d jsonb not null)",
      "\\copy orders from '\(directory)/orders.tsv'",
      "\\copy customers from '\(directory)/customers.tsv'",
      "create index on orders ((d->>'category'))",
      "create index on orders ((d->>'customer'))",
      "create index on orders ((d->>'status'), ((d->>'amount')::bigint))",
      "create index on customers ((d->>'name'))",
    ])
    for table in ["orders", "customers"] { try postgres.run(["vacuum analyze \(table)"]) }
  }
}

/// A pipeline, and the same work in SQL.
private struct PipelineWork: Sendable {
  let name: String
  let stages: String
  let sql: String
  let mark: String
  /// Compares the responses as far as their forms allow.
  let agrees: @Sendable (_ body: String, _ result: String) -> Bool

  var body: String { #"{"structuredPipeline": {"pipeline": {"stages": [\#(stages)]}}}"# }

  /// Whether the only row of the pipeline has the numbers of the only row of the query.
  @Sendable private static func sameNumbers(_ body: String, _ result: String) -> Bool {
    result.split(separator: "|").allSatisfy { body.contains("\"integerValue\": \"\($0)\"") }
  }

  private static let orders = #"{"name": "collection", "args": [{"referenceValue": "/orders"}]}"#
  private static let customers = #"{"name": "collection", "args": [{"referenceValue": "/customers"}]}"#

  private static func field(_ name: String) -> String { #"{"fieldReferenceValue": "\#(name)"}"# }
  private static func text(_ text: String) -> String { #"{"stringValue": "\#(text)"}"# }
  private static func integer(_ number: Int) -> String { #"{"integerValue": "\#(number)"}"# }

  private static func call(_ name: String, _ arguments: String...) -> String {
    #"{"functionValue": {"name": "\#(name)", "args": [\#(arguments.joined(separator: ", "))]}}"#
  }

  private static func stage(_ name: String, _ arguments: String...) -> String {
    #"{"name": "\#(name)", "args": [\#(arguments.joined(separator: ", "))]}"#
  }

  private static func map(_ entries: (String, String)...) -> String {
    let fields = entries.map { #""\#($0.0)": \#($0.1)"# }.joined(separator: ", ")
    return #"{"mapValue": {"fields": {\#(fields)}}}"#
  }

  private static func pipeline(_ stages: String...) -> String { stages.joined(separator: ", ") }

  static let all: [PipelineWork] = [
    PipelineWork(
      name: "group 1,000,000 by 50 values: count, sum, average",
      stages: pipeline(
        orders,
        stage(
          "aggregate",
          map(("n", call("count")), ("sum", call("sum", field("amount"))), ("mean", call("average", field("score")))),
          map(("category", field("category"))))),
      sql: """
        select d->>'category', count(*), sum((d->>'amount')::bigint), avg((d->>'score')::float8) from orders group by 1
        """,
      mark: "ahead"
    ) { body, result in
      result.split(separator: "\n").allSatisfy { line in
        line.split(separator: "|")[1...2].allSatisfy { body.contains("\"integerValue\": \"\($0)\"") }
      }
    },
    PipelineWork(
      name: "the 50 greatest of 200,000, filter and sort",
      stages: pipeline(
        orders, stage("where", call("equal", field("status"), text("paid"))),
        // With these two, the declared index has the order.
        stage("where", call("exists", field("amount"))),
        stage(
          "sort", map(("expression", field("amount")), ("direction", text("descending"))),
          map(("expression", field("__name__")), ("direction", text("descending")))),
        stage("limit", integer(50))),
      sql: """
        select id, d from orders where d->>'status' = 'paid' order by (d->>'amount')::bigint desc limit 50
        """,
      mark: "ahead"
    ) { body, result in
      body.components(separatedBy: "\"name\":").count == 51 && result.split(separator: "\n").count == 50
    },
    PipelineWork(
      name: "join of 100,000 with 10 each by a nested pipeline",
      stages: pipeline(
        customers, stage("let", map(("c", field("name")))),
        stage(
          "add_fields",
          map(
            (
              "total",
              call(
                "scalar",
                #"{"pipelineValue": {"stages": ["#
                  + pipeline(
                    orders,
                    stage("where", call("equal", field("customer"), #"{"variableReferenceValue": "c"}"#)),
                    stage("aggregate", map(("t", call("sum", field("amount")))), map()))
                  + "]}}")
            ))),
        stage("aggregate", map(("n", call("count")), ("sum", call("sum", field("total")))), map())),
      sql: """
        select count(*), sum(t) from (select (select sum((o.d->>'amount')::bigint) from orders o
        where o.d->>'customer' = c.d->>'name') t from customers c offset 0) x
        """,
      mark: "ahead", agrees: sameNumbers),
    PipelineWork(
      name: "count 100,000 distinct of 1,000,000",
      stages: pipeline(
        orders, stage("aggregate", map(("n", call("count_distinct", field("customer")))), map())),
      sql: "select count(distinct d->>'customer') from orders",
      mark: "ahead", agrees: sameNumbers),
    PipelineWork(
      name: "count by an expression that no index has",
      stages: pipeline(
        orders, stage("where", call("equal", call("mod", field("amount"), integer(97)), integer(5))),
        stage("aggregate", map(("n", call("count"))), map())),
      sql: "select count(*) from orders where (d->>'amount')::bigint % 97 = 5",
      mark: "", agrees: sameNumbers),
    PipelineWork(
      name: "count 200,000 by an index",
      stages: pipeline(
        orders, stage("where", call("equal", field("status"), text("paid"))),
        stage("aggregate", map(("n", call("count"))), map())),
      sql: "select count(*) from orders where d->>'status' = 'paid'",
      mark: "", agrees: sameNumbers),
  ]
}
