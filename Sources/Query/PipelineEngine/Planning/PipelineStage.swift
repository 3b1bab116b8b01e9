import DocumentModel
import PipelineExpressions

/// The checked stages of a pipeline or nested pipeline.
struct PipelineBody: Sendable {
  var stages: [PipelineStage] = []
  /// The number of variables that a row carries: those of the enclosing pipelines, then its own.
  var variableCount = 0
  /// The number of variables of the enclosing pipelines.
  var outerVariableCount = 0
  /// The plan of the source, if it reads collections.
  var plan: SourcePlan?
}

extension PipelineBody {
  /// Whether the stages give every row the same single field.
  fileprivate var hasOneField: Bool {
    for stage in stages.reversed() {
      switch stage.operation {
      case .filter, .sort, .limit, .offset, .sampleCount, .samplePart, .bind: continue
      case .select(let assignments): return assignments.fieldCount == 1
      case .aggregate(let grouping): return grouping.groups.count + grouping.accumulators.count == 1
      default: return false
      }
    }
    return false
  }
}

/// A checked stage. Its expressions are numbers of expressions in its program.
struct PipelineStage: Sendable {
  /// The number of the stage in its pipeline, from 1.
  var number: Int
  var name: String
  var operation: Operation
  /// The expressions of the stage, or `nil` if it has none.
  var program: ExpressionProgram?
  /// The nested pipelines of the stage's expressions. They run before the stage, once per row.
  var subpipelines: [Subpipeline] = []

  /// The work of a stage.
  enum Operation: Sendable {
    case source(PipelineSource)
    /// Keeps the rows for which the condition is true.
    case filter(Int, PrefixCondition)
    case select(RowAssignments)
    case addFields(RowAssignments)
    case removeFields(RowRemovals)
    case sort([SortTerm])
    case limit(Int)
    case offset(Int)
    case aggregate(RowGrouping)
    case unnest(Int, alias: FieldPath, index: FieldPath?)
    case replace(Int, ReplaceMode)
    case sampleCount(Int)
    case samplePart(Double)
    case union(PipelineBody)
    case nearest(NearestSearch)
    /// Binds variables, given by their numbers.
    case bind([(variable: Int, expression: Int)])
    case search(SearchPlan)
    case update(RowAssignments)
    case delete
  }
}

/// The input of a pipeline.
enum PipelineSource: Sendable {
  /// The documents of collections.
  case query(parent: ResourcePath, collectionID: String?, includesDescendants: Bool)
  /// Documents by name.
  case documents([DocumentKey])
  /// Rows from the request.
  case literals([RowAssignments])
  /// A collection below the document of the enclosing row.
  case subcollection(String)
}

/// A nested pipeline whose rows are the value of an expression.
struct Subpipeline: Sendable {
  /// The variable of the row that receives the value.
  var variable: Int
  /// Whether the value is that of the only row, not an array of all.
  var isScalar: Bool
  /// Whether the rows have one field by their shape, so that its value is that of a row.
  var hasOneField: Bool { body.hasOneField }
  /// Whether the rows depend on the enclosing row.
  var isCorrelated: Bool
  var body: PipelineBody
  /// Another form of the pipeline for many rows, if it has one.
  var lookup: LookupPlan?
}

struct SortTerm: Sendable {
  var expression: Int
  var isDescending: Bool
  /// The field, if the expression is only that.
  var field: FieldPath?
}

enum ReplaceMode: Sendable {
  /// The map becomes the row.
  case full
  /// The map's fields replace fields of the row.
  case overwriteExisting
  /// The map's fields are added if the row lacks them.
  case keepExisting
}

/// An accumulator of a group. The argument is `nil` if the function has none.
struct GroupAccumulator: Sendable {
  var function: AccumulatorFunction
  var argument: Int?
}

/// The groups and accumulators of `aggregate`, or of `distinct`, which has no accumulators.
struct RowGrouping: Sendable {
  var groups: [Int]
  var accumulators: [GroupAccumulator]
  /// The aliases: those of the groups, then those of the accumulators.
  var tree: FieldTree
}

struct NearestSearch: Sendable {
  var expression: Int
  var vector: [Double]
  var measure: FindNearest.Measure
  /// The maximum number of rows, or `nil` for all.
  var limit: Int?
  var distanceField: FieldPath?
}

/// Expressions whose values become fields of a row, by alias.
struct RowAssignments: Sendable {
  var expressions: [Int]
  /// The aliases that are fields, with the places of their expressions in ``expressions``.
  var tree: FieldTree
  /// The places of the expressions for the name and the times of a row.
  var name: Int?
  var createTime: Int?
  var updateTime: Int?

  /// Whether no alias is given.
  var isEmpty: Bool { expressions.isEmpty }
  /// The number of aliases that are fields, not the name or a time.
  var fieldCount: Int {
    expressions.count - (name == nil ? 0 : 1) - (createTime == nil ? 0 : 1) - (updateTime == nil ? 0 : 1)
  }
}

/// Fields to remove from a row.
struct RowRemovals: Sendable {
  var tree: FieldTree
  var removesName = false
  var removesCreateTime = false
  var removesUpdateTime = false
}
