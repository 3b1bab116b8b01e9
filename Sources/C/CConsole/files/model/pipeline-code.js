// A pipeline as code: for the web SDK, for the Python client and for HearthClient.

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

function scriptOf(value, used, isOperand = false) {
  if ("fieldReferenceValue" in value) { used.add("field"); return `field(${JSON.stringify(value.fieldReferenceValue)})`; }
  if ("functionValue" in value) {
    const name = value.functionValue.name === "count" && !(value.functionValue.args?.length) ? "countAll" : camel(value.functionValue.name);
    used.add(name);
    return `${name}(${(value.functionValue.args ?? []).map((each, index) => scriptOf(each, used, index === 0)).join(", ")})`;
  }
  const plain = "stringValue" in value ? JSON.stringify(value.stringValue) : "integerValue" in value ? value.integerValue
    : "doubleValue" in value ? String(value.doubleValue) : "booleanValue" in value ? String(value.booleanValue)
      : "arrayValue" in value ? `[${(value.arrayValue.values ?? []).map((each) => scriptOf(each, used)).join(", ")}]`
        : "referenceValue" in value ? `doc(db, ${JSON.stringify(value.referenceValue.split("/documents/").pop())})` : "null";
  if (!isOperand) return plain;
  used.add("constant");
  return `constant(${plain})`;
}

/** The stages as a script for the web SDK. Stages that the editor has no line for are a comment. */
export function pipelineScript(stages) {
  const used = new Set(["execute"]);
  const named = (map) => Object.entries(map?.mapValue?.fields ?? {}).map(([name, value]) =>
    value.fieldReferenceValue === name ? JSON.stringify(name) : `${scriptOf(value, used, true)}.as(${JSON.stringify(name)})`);
  const lines = stages.map(({ name, args = [] }) => {
    switch (name) {
      case "collection": return `.collection(${JSON.stringify(args[0].referenceValue.slice(1))})`;
      case "collection_group": return `.collectionGroup(${JSON.stringify(args[1].stringValue)})`;
      case "database": return ".database()";
      case "documents": return `.documents([${args.map((each) => JSON.stringify(each.referenceValue.slice(1))).join(", ")}])`;
      case "where": return `.where(${scriptOf(args[0], used)})`;
      case "select": case "add_fields": case "distinct": return `.${camel(name)}(${named(args[0]).join(", ")})`;
      case "remove_fields": return `.removeFields(${args.map((each) => JSON.stringify(each.fieldReferenceValue)).join(", ")})`;
      case "aggregate": {
        const groups = named(args[1]);
        return `.aggregate({ accumulators: [${named(args[0]).join(", ")}]${groups.length > 0 ? `, groups: [${groups.join(", ")}]` : ""} })`;
      }
      case "sort": return `.sort(${args.map(({ mapValue: { fields } }) => `${scriptOf(fields.expression, used)}.${fields.direction.stringValue}()`).join(", ")})`;
      case "limit": case "offset": return `.${name}(${args[0].integerValue})`;
      case "unnest": return `.unnest(${scriptOf(args[0], used)}.as(${JSON.stringify(args[1].fieldReferenceValue)}))`;
      case "replace_with": return `.replaceWith(${scriptOf(args[0], used)})`;
      case "sample": return args[1].stringValue === "percent" ? `.sample({ percentage: ${args[0].doubleValue} })` : `.sample(${args[0].integerValue})`;
      default: return `// .${camel(name)}(…)`;
    }
  });
  return `import { ${[...used].sort().join(", ")} } from "firebase/firestore/pipelines";\n\nconst snapshot = await execute(db.pipeline()\n  ${lines.join("\n  ")});\n`
    + "for (const row of snapshot.results) console.log(row.id, row.data());";
}

const hasNested = (value) => JSON.stringify(value).includes('"pipelineValue"');

function refuseNested(stages, language) {
  if (hasNested(stages)) throw new Error(`The console does not write pipelines inside of pipelines as ${language}. Use REST, or hearth query --pipeline.`);
}

/** A number with a fraction, so that no language reads it as an integer. */
function doubleCode(value, special) {
  const number = Number(value);
  if (!Number.isFinite(number)) return special(String(number));
  return /[.e]/.test(String(number)) ? String(number) : `${number}.0`;
}

const pathAfterDocuments = (value) => value.referenceValue.split("/documents/").pop().replace(/^\//, "");
/** The fields of a map, and whether each is a field under its own name. */
const namedFields = (map) => Object.entries(map?.mapValue?.fields ?? {}).map(([name, value]) => ({ name, value, isOwn: value.fieldReferenceValue === name }));

const lineMax = 100;
const closing = { "(": ")", "[": "]", "{": "}" };

/** The parts of a text between commas that are in no brackets and no string, and the place of its last outermost bracket. */
function partsOf(text) {
  const parts = [""];
  let depth = 0;
  let isText = false;
  let opening = -1;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (isText && sign === "\\") { parts[parts.length - 1] += text.slice(at, at + 2); at += 1; continue; }
    if (sign === '"') isText = !isText;
    if (!isText && sign in closing) { if (depth === 0) opening = at; depth += 1; }
    if (!isText && (sign === ")" || sign === "]" || sign === "}")) depth -= 1;
    if (!isText && depth === 0 && sign === ",") parts.push(""); else parts[parts.length - 1] += sign;
  }
  return { parts: parts.map((part) => part.trim()), opening };
}

/** Breaks a long call or list into a line for each of its members. */
function broken(text, indent, step) {
  if (indent.length + text.length <= lineMax) return text;
  const { opening } = partsOf(text);
  if (opening < 0 || closing[text[opening]] !== text.at(-1)) return text;
  const inner = indent + step;
  const members = partsOf(text.slice(opening + 1, -1)).parts.map((part) => `${inner}${broken(part, inner, step)}`);
  return `${text.slice(0, opening + 1)}\n${members.join(",\n")}\n${indent}${text.at(-1)}`;
}

// Python.

const pythonMethods = new Set(["add", "subtract", "multiply", "divide", "mod", "equal", "not_equal", "greater_than", "greater_than_or_equal", "less_than",
  "less_than_or_equal", "sum", "average", "minimum", "maximum", "count", "count_distinct", "to_lower", "to_upper", "starts_with", "ends_with", "string_contains",
  "array_contains", "array_length", "char_length", "exists", "is_absent"]);
const pythonClasses = { and: "And", or: "Or", not: "Not" };

/** An expression for Python. `isOperand` asks for an object with the methods of expressions, not for a plain value. */
function pythonOf(value, used, isOperand = false) {
  const text = JSON.stringify;
  const name = (word) => { used.add(word); return word; };
  if ("fieldReferenceValue" in value) return `${name("Field")}.of(${text(value.fieldReferenceValue)})`;
  if ("variableReferenceValue" in value) return `${name("Variable")}(${text(value.variableReferenceValue)})`;
  if ("functionValue" in value) {
    const { name: called, args = [] } = value.functionValue;
    if (called === "count" && args.length === 0) return `${name("Count")}()`;
    if (Object.hasOwn(pythonClasses, called)) return `${name(pythonClasses[called])}(${args.map((each) => pythonOf(each, used, true)).join(", ")})`;
    if (pythonMethods.has(called) && args.length > 0) {
      return `${pythonOf(args[0], used, true)}.${called}(${args.slice(1).map((each) => pythonOf(each, used)).join(", ")})`;
    }
    return `${name("FunctionExpression")}(${text(called)}, [${args.map((each) => pythonOf(each, used, true)).join(", ")}])`;
  }
  if ("mapValue" in value) {
    const members = Object.entries(value.mapValue.fields ?? {}).map(([key, each]) => `${text(key)}: ${pythonOf(each, used)}`);
    return isOperand ? `${name("Map")}({${members.join(", ")}})` : `{${members.join(", ")}}`;
  }
  const plain = pythonPlain(value, used);
  return isOperand ? `${name("Constant")}.of(${plain})` : plain;
}

function pythonPlain(value, used) {
  const text = JSON.stringify;
  if ("stringValue" in value) return text(value.stringValue);
  if ("integerValue" in value) return String(value.integerValue);
  if ("doubleValue" in value) return doubleCode(value.doubleValue, (word) => `float("${word}")`);
  if ("booleanValue" in value) return value.booleanValue ? "True" : "False";
  if ("nullValue" in value) return "None";
  if ("timestampValue" in value) { used.add("datetime"); return `datetime.fromisoformat(${text(value.timestampValue.replace(/Z$/, "+00:00"))})`; }
  if ("bytesValue" in value) { used.add("b64decode"); return `b64decode(${text(value.bytesValue)})`; }
  if ("geoPointValue" in value) return `firestore.GeoPoint(${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0})`;
  if ("referenceValue" in value) return `db.document(${text(pathAfterDocuments(value))})`;
  return `[${(value.arrayValue?.values ?? []).map((each) => pythonOf(each, used)).join(", ")}]`;
}

function pythonStage({ name, args = [], options }, used) {
  const text = JSON.stringify;
  const aliased = (map) => namedFields(map).map((each) => `${pythonOf(each.value, used, true)}.as_(${text(each.name)})`).join(", ");
  const fields = (map) => namedFields(map).map((each) => each.isOwn ? text(each.name) : `${pythonOf(each.value, used, true)}.as_(${text(each.name)})`).join(", ");
  if (!options || Object.keys(options).length === 0) {
    switch (name) {
      case "collection": return `.collection(${text(pathAfterDocuments(args[0]))})`;
      case "collection_group": return `.collection_group(${text(args[1].stringValue)})`;
      case "database": return ".database()";
      case "documents": return `.documents(${args.map((each) => `db.document(${text(pathAfterDocuments(each))})`).join(", ")})`;
      case "where": return `.where(${pythonOf(args[0], used)})`;
      case "select": case "distinct": return `.${name}(${fields(args[0])})`;
      case "add_fields": return `.add_fields(${aliased(args[0])})`;
      case "remove_fields": return `.remove_fields(${args.map((each) => text(each.fieldReferenceValue)).join(", ")})`;
      case "aggregate": {
        const groups = fields(args[1]);
        return `.aggregate(${aliased(args[0])}${groups ? `, groups=[${groups}]` : ""})`;
      }
      case "sort": return `.sort(${args.map(({ mapValue: { fields: order } }) => `${pythonOf(order.expression, used, true)}.${order.direction.stringValue}()`).join(", ")})`;
      case "limit": case "offset": return `.${name}(${args[0].integerValue})`;
      case "unnest": return `.unnest(${"fieldReferenceValue" in args[0] ? text(args[0].fieldReferenceValue) : `${pythonOf(args[0], used, true)}.as_(${text(args[1].fieldReferenceValue)})`}, ${
        text(args[1].fieldReferenceValue)})`;
      case "replace_with": return `.replace_with(${pythonOf(args[0], used, true)})`;
      case "sample":
        if (args[1].stringValue !== "percent") return `.sample(${args[0].integerValue})`;
        used.add("SampleOptions");
        return `.sample(SampleOptions.percentage(${doubleCode(args[0].doubleValue, (word) => word)}))`;
      case "let": return `.define(${aliased(args[0])})`;
      case "update": return `.update(${aliased(args[0])})`;
      case "delete": return ".delete()";
      default:
    }
  }
  if (args.some((each) => "mapValue" in each)) throw new Error(`The console does not write the stage ${name} as Python. Use REST, or hearth query --pipeline.`);
  const members = Object.entries(options ?? {}).map(([key, each]) => `${text(key)}: ${pythonOf(each, used, true)}`);
  return `.raw_stage(${[text(name), ...args.map((each) => pythonOf(each, used, true))].join(", ")}${members.length > 0 ? `, options={${members.join(", ")}}` : ""})`;
}

/** The stages as a program for google-cloud-firestore. Throws an error with a sentence. */
export function pipelinePython(stages, { project, database, host }) {
  refuseNested(stages, "Python");
  const used = new Set();
  const lines = stages.map((stage) => broken(pythonStage(stage, used), "    ", "    "));
  const types = [...used].filter((word) => !["datetime", "b64decode", "SampleOptions"].includes(word)).sort();
  const imports = [used.has("b64decode") ? "from base64 import b64decode" : "", used.has("datetime") ? "from datetime import datetime" : "",
    "from google.cloud import firestore",
    types.length > 0 ? `from google.cloud.firestore_v1.pipeline_expressions import ${types.join(", ")}` : "",
    used.has("SampleOptions") ? "from google.cloud.firestore_v1.pipeline_types import SampleOptions" : ""].filter(Boolean).join("\n");
  const name = database === "(default)" ? "" : `, database=${JSON.stringify(database)}`;
  return `# FIRESTORE_EMULATOR_HOST=${host} python pipeline.py\n${imports}\n\ndb = firestore.Client(project=${JSON.stringify(project)}${name})\n`
    + `pipeline = (\n    db.pipeline()\n    ${lines.join("\n    ")}\n)\nfor row in pipeline.stream():\n    print(row.id, row.data())`;
}

// Swift.

const swiftComparisons = { equal: "equal", not_equal: "notEqual", less_than: "lessThan", less_than_or_equal: "lessThanOrEqual", greater_than: "greaterThan",
  greater_than_or_equal: "greaterThanOrEqual", array_contains: "arrayContains", array_contains_any: "arrayContainsAny", equal_any: "isIn", not_equal_any: "isNotIn" };
const swiftMethods = { add: "adding(", subtract: "subtracting(", multiply: "multiplied(by: ", divide: "divided(by: " };
const swiftAccumulators = { sum: "sum", average: "average", minimum: "minimum", maximum: "maximum", count_distinct: "countDistinct", exists: "exists" };

/** A text as a literal of Swift, which knows other escapes than JSON. */
export const swiftText = (text) => JSON.stringify(text).replace(/\\(\\|u([0-9a-f]{4})|[bf])/g, (all, sign, code) =>
  sign === "\\" ? all : code ? `\\u{${code}}` : sign === "b" ? "\\u{8}" : "\\u{c}");

function swiftOf(value, isFluent = false) {
  const own = isFluent ? "RowExpression" : "";
  if ("fieldReferenceValue" in value) return `${own}.field(${swiftText(value.fieldReferenceValue)})`;
  if ("variableReferenceValue" in value) return `${own}.variable(${swiftText(value.variableReferenceValue)})`;
  if ("functionValue" in value) {
    const { name, args = [] } = value.functionValue;
    const inner = args.map((each) => swiftOf(each));
    if (name === "count" && args.length === 0) return `${own}.count`;
    if (name === "and" || name === "or") return `${own}.${name}([${inner.join(", ")}])`;
    if (name === "not") return `${own}.not(${inner[0]})`;
    if (Object.hasOwn(swiftComparisons, name) && args.length === 2) return `${own}.comparison(${inner[0]}, .${swiftComparisons[name]}, ${inner[1]})`;
    if (Object.hasOwn(swiftMethods, name) && args.length === 2) return `${swiftOf(args[0], true)}.${swiftMethods[name]}${inner[1]})`;
    if (Object.hasOwn(swiftAccumulators, name) && args.length === 1 && "fieldReferenceValue" in args[0]) {
      return `${own}.${swiftAccumulators[name]}(${swiftText(args[0].fieldReferenceValue)})`;
    }
    return `${own}.function(${[swiftText(name), ...inner].join(", ")})`;
  }
  if ("mapValue" in value) return `${own}.map(${swiftDictionary(namedFields(value), (each) => swiftOf(each.value))})`;
  return `${own}.constant(${swiftPlain(value)})`;
}

const swiftDictionary = (fields, write) => fields.length === 0 ? "[:]" : `[${fields.map((each) => `${swiftText(each.name)}: ${write(each)}`).join(", ")}]`;

function swiftPlain(value) {
  if ("stringValue" in value) return swiftText(value.stringValue);
  if ("integerValue" in value) return String(value.integerValue);
  if ("doubleValue" in value) return doubleCode(value.doubleValue, (word) => ({ NaN: "Double.nan", Infinity: "Double.infinity", "-Infinity": "-Double.infinity" })[word]);
  if ("booleanValue" in value) return String(value.booleanValue);
  if ("nullValue" in value) return "Value.null";
  if ("timestampValue" in value) return `try Date(${swiftText(value.timestampValue)}, strategy: .iso8601)`;
  if ("bytesValue" in value) return `Data(base64Encoded: ${swiftText(value.bytesValue)})!`;
  if ("geoPointValue" in value) return `GeoPoint(latitude: ${value.geoPointValue.latitude ?? 0}, longitude: ${value.geoPointValue.longitude ?? 0})`;
  if ("referenceValue" in value) return `hearth.document(${swiftText(pathAfterDocuments(value))})`;
  return `[${(value.arrayValue?.values ?? []).map((each) => swiftElement(each)).join(", ")}] as Value`;
}

/** An element of a list of constants, which is a `Value`. */
function swiftElement(value) {
  if ("referenceValue" in value) return `.reference(${swiftPlain(value)})`;
  if ("timestampValue" in value) return `.timestamp(Timestamp(${swiftPlain(value)}))`;
  if ("bytesValue" in value) return `.bytes(${swiftPlain(value)})`;
  if ("geoPointValue" in value) return `.geoPoint(${swiftPlain(value)})`;
  return "arrayValue" in value ? swiftPlain(value) : "nullValue" in value ? "nil" : "doubleValue" in value ? `.double(${swiftPlain(value)})` : swiftPlain(value);
}

function swiftStage({ name, args = [], options }) {
  const isOwn = (map) => namedFields(map).length > 0 && namedFields(map).every((each) => each.isOwn);
  const paths = (map) => namedFields(map).map((each) => swiftText(each.name)).join(", ");
  const values = (map) => swiftDictionary(namedFields(map), (each) => swiftOf(each.value));
  if (!options || Object.keys(options).length === 0) {
    switch (name) {
      case "collection": return `.collection(${swiftText(pathAfterDocuments(args[0]))})`;
      case "collection_group": return `.collectionGroup(${swiftText(args[1].stringValue)})`;
      case "database": return ".database()";
      case "documents": return `.documents([${args.map((each) => `hearth.document(${swiftText(pathAfterDocuments(each))})`).join(", ")}])`;
      case "where": {
        const { name: called, args: [left, right] = [] } = args[0].functionValue ?? {};
        const isSimple = Object.hasOwn(swiftComparisons, called ?? "") && left && right && "fieldReferenceValue" in left && !("functionValue" in right);
        if (!isSimple) return `.where(${swiftOf(args[0])})`;
        const compared = "fieldReferenceValue" in right || "variableReferenceValue" in right || "mapValue" in right ? swiftOf(right) : swiftPlain(right);
        return `.where(${swiftText(left.fieldReferenceValue)}, .${swiftComparisons[called]}, ${compared})`;
      }
      case "select": case "distinct": return `.${name}(${isOwn(args[0]) ? paths(args[0]) : values(args[0])})`;
      case "add_fields": return `.addFields(${values(args[0])})`;
      case "remove_fields": return `.removeFields(${args.map((each) => swiftText(each.fieldReferenceValue)).join(", ")})`;
      case "aggregate": return `.aggregate(${values(args[0])}${namedFields(args[1]).length === 0 ? "" : isOwn(args[1]) ? `, by: ${paths(args[1])}` : `, by: ${values(args[1])}`})`;
      case "sort": return `.sort(${args.map(({ mapValue: { fields } }) => `.${fields.direction.stringValue}(${
        "fieldReferenceValue" in fields.expression ? swiftText(fields.expression.fieldReferenceValue) : swiftOf(fields.expression)})`).join(", ")})`;
      case "limit": return `.limit(to: ${args[0].integerValue})`;
      case "offset": return `.offset(${args[0].integerValue})`;
      case "unnest": return `.unnest(${swiftOf(args[0])}, as: ${swiftText(args[1].fieldReferenceValue)})`;
      case "let": return `.define(${values(args[0])})`;
      case "replace_with": return `.replace(with: ${swiftOf(args[0])})`;
      case "sample": return args[1].stringValue === "percent" ? `.sample(part: ${doubleCode(args[0].doubleValue, (word) => word)})` : `.sample(count: ${args[0].integerValue})`;
      default:
    }
  }
  const more = args.length > 0 ? `, [${args.map((each) => swiftOf(each)).join(", ")}]` : "";
  const members = Object.entries(options ?? {}).map(([key, value]) => ({ name: key, value }));
  return `.stage(${swiftText(name)}${more}${members.length > 0 ? `, options: ${swiftDictionary(members, (each) => swiftOf(each.value))}` : ""})`;
}

/** The stages as code for HearthClient. Throws an error with a sentence. */
export function pipelineSwift(stages) {
  refuseNested(stages, "Swift");
  return `let results = try await hearth.pipeline()\n  ${stages.map((stage) => broken(swiftStage(stage), "  ", "  ")).join("\n  ")}\n  .get()\nfor row in results.rows {\n  print(row.reference?.id ?? "", row.fields)\n}`;
}
