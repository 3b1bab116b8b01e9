package import DocumentModel

/// A value of a `google.protobuf.Struct`. Only the types that query explanations use are supported.
package enum StructValue {
  case text(String)
  case object([StructMember])
}

/// A member of a `google.protobuf.Struct`.
package typealias StructMember = (key: StaticString, value: StructValue)

extension ExplainMetrics {
  /// The items of `PlanSummary.indexes_used`. The first one also holds the plan as text, in `plan`. The objects are
  /// free-form, so clients ignore that member.
  package var indexStructs: [[StructMember]] {
    indexesUsed.enumerated().map { index, use in
      var members: [StructMember] = [
        ("query_scope", .text(use.scope)), ("properties", .text(use.properties)),
      ]
      if index == 0 { members.append(("plan", .text(plan))) }
      return members
    }
  }
}

extension ExplainMetrics.Execution {
  /// The content of `ExecutionStats.debug_stats`.
  package var debugStruct: [StructMember] {
    [
      ("documents_scanned", .text("\(documentsScanned)")),
      ("index_entries_scanned", .text("\(indexEntriesScanned)")),
      (
        "billing_details",
        .object([
          ("documents_billable", .text("\(readOperations)")), ("index_entries_billable", .text("0")),
          ("min_query_cost", .text("0")),
        ])
      ),
    ]
  }
}
