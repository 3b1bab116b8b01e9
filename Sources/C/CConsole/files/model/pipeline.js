// A pipeline as the editor of Query shows it: one stage a line, which becomes the stages of the API.
//
//     collection products
//     where category == "kitchen" && price > 10
//     aggregate count() as n, average(price) as price by category
//     sort price desc
//
// A text that begins with `[` is the API's JSON: the stages themselves.

/** What an empty editor shows. */
export const examplePipeline = (collection) => `collection ${collection || "products"}\nlimit 20\n`;

const infix = [
  { "||": "or" }, { "&&": "and" },
  { "==": "equal", "!=": "not_equal", "<=": "less_than_or_equal", ">=": "greater_than_or_equal", "<": "less_than", ">": "greater_than" },
  { "+": "add", "-": "subtract" }, { "*": "multiply", "/": "divide", "%": "mod" },
];
const pattern = /\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(@[^\s,)\]]+)|((?:[A-Za-z_]\w*|`[^`]+`)(?:\.(?:[A-Za-z_]\w*|`[^`]+`))*)|(\|\||&&|==|!=|<=|>=|[-+*/%<>!(),[\]]))/y;

/** Cuts the text of a stage into `{ kind, text }`. Throws an error with a sentence. */
function tokensOf(text) {
  const found = [];
  pattern.lastIndex = 0;
  while (text.slice(pattern.lastIndex).trim() !== "") {
    const from = pattern.lastIndex;
    const match = pattern.exec(text);
    if (!match) throw new Error(`"${text.slice(from).trim().slice(0, 20)}" is not understood`);
    const kind = ["string", "number", "reference", "name", "sign"][match.slice(1).findIndex((part) => part !== undefined)];
    found.push({ kind, text: match[0].trim() });
  }
  return found;
}

/** Reads expressions of tokens. An expression is a value of the API. */
class ExpressionReader {
  constructor(text, root) { this.tokens = tokensOf(text); this.at = 0; this.root = root; }

  get isAtEnd() { return this.at >= this.tokens.length; }
  peek(text) { return this.tokens[this.at]?.kind !== "string" && this.tokens[this.at]?.text === text; }
  take(text) { if (this.peek(text)) { this.at += 1; return true; } return false; }
  expect(text) { if (!this.take(text)) throw new Error(`"${text}" is missing${this.isAtEnd ? "" : ` before "${this.tokens[this.at].text}"`}`); }

  expression(level = 0) {
    if (level === infix.length) return this.unary();
    let left = this.expression(level + 1);
    for (;;) {
      const sign = this.tokens[this.at]?.kind === "sign" ? this.tokens[this.at].text : "";
      const name = Object.hasOwn(infix[level], sign) ? infix[level][sign] : "";
      if (!name) return left;
      this.at += 1;
      const right = this.expression(level + 1);
      // `a && b && c` is one call.
      const isSame = (name === "and" || name === "or") && left.functionValue?.name === name;
      left = isSame ? { functionValue: { name, args: [...left.functionValue.args, right] } } : { functionValue: { name, args: [left, right] } };
    }
  }

  unary() {
    if (this.take("!")) return { functionValue: { name: "not", args: [this.unary()] } };
    if (this.take("-")) {
      const value = this.unary();
      if ("integerValue" in value) return { integerValue: `-${value.integerValue}` };
      if ("doubleValue" in value) return { doubleValue: -value.doubleValue };
      throw new Error("a minus needs a number, or something to its left");
    }
    return this.primary();
  }

  primary() {
    const token = this.tokens[this.at];
    if (!token) throw new Error("an expression is missing at the end");
    this.at += 1;
    switch (token.kind) {
      case "string": return { stringValue: token.text[0] === '"' ? JSON.parse(token.text) : token.text.slice(1, -1).replace(/\\(.)/g, "$1") };
      case "number": return /^\d+$/.test(token.text) ? { integerValue: token.text } : { doubleValue: Number(token.text) };
      case "reference": return { referenceValue: `${this.root}/documents/${token.text.slice(1)}` };
      case "name":
        if (token.text === "true" || token.text === "false") return { booleanValue: token.text === "true" };
        if (token.text === "null") return { nullValue: null };
        if (!this.take("(")) return { fieldReferenceValue: token.text };
        return { functionValue: { name: token.text, args: this.list(")") } };
      default:
    }
    if (token.text === "(") { const value = this.expression(); this.expect(")"); return value; }
    if (token.text === "[") {
      const values = this.list("]");
      const isPlain = values.every((value) => !("fieldReferenceValue" in value) && !("functionValue" in value));
      return isPlain ? { arrayValue: { values } } : { functionValue: { name: "array", args: values } };
    }
    throw new Error(`an expression is missing before "${token.text}"`);
  }

  list(end) {
    const values = [];
    if (this.take(end)) return values;
    do values.push(this.expression()); while (this.take(","));
    this.expect(end);
    return values;
  }

  /** Expressions with names: `average(price) as price, category`. */
  named(isNameNeeded = false) {
    const fields = {};
    do {
      const value = this.expression();
      let name = value.fieldReferenceValue;
      if (this.take("as")) { name = this.tokens[this.at]?.text.replaceAll("`", ""); this.at += 1; }
      if (!name || (isNameNeeded && value.fieldReferenceValue)) throw new Error('give each expression a name: average(price) as price');
      if (Object.hasOwn(fields, name)) throw new Error(`the name ${name} is there twice`);
      fields[name] = value;
    } while (this.take(","));
    return { mapValue: { fields } };
  }
}

const int = (text) => {
  if (!/^\d+$/.test(text)) throw new Error("write a whole number");
  return { integerValue: text };
};

/** What follows the name of a stage, as its arguments. */
const stageReaders = {
  collection: (text) => [{ referenceValue: `/${text.replace(/^\//, "")}` }],
  collection_group: (text) => [{ referenceValue: "" }, { stringValue: text }],
  database: () => [],
  documents: (text) => text.split(",").map((path) => ({ referenceValue: `/${path.trim().replace(/^[@/]/, "")}` })),
  where: (text, root) => one(text, root, (reader) => [reader.expression()]),
  select: (text, root) => one(text, root, (reader) => [reader.named()]),
  add_fields: (text, root) => one(text, root, (reader) => [reader.named(true)]),
  distinct: (text, root) => one(text, root, (reader) => [reader.named()]),
  remove_fields: (text, root) => one(`[${text}]`, root, (reader) => { reader.take("["); return reader.list("]"); }),
  aggregate: (text, root) => one(text, root, (reader) => {
    const made = reader.named(true);
    return [made, reader.take("by") ? reader.named() : { mapValue: { fields: {} } }];
  }),
  sort: (text, root) => one(text, root, (reader) => {
    const orders = [];
    do {
      const expression = reader.expression();
      const direction = reader.take("desc") ? "descending" : (reader.take("asc"), "ascending");
      orders.push({ mapValue: { fields: { direction: { stringValue: direction }, expression } } });
    } while (reader.take(","));
    return orders;
  }),
  limit: (text) => [int(text)],
  offset: (text) => [int(text)],
  unnest: (text, root) => one(text, root, (reader) => {
    const value = reader.expression();
    reader.expect("as");
    const name = reader.tokens[reader.at]?.text;
    if (!name) throw new Error("name the element: unnest tags as tag");
    reader.at += 1;
    return [value, { fieldReferenceValue: name }];
  }),
  replace_with: (text, root) => one(text, root, (reader) => [reader.expression(), { stringValue: "full_replace" }]),
  sample: (text) => text.endsWith("%") ? [{ doubleValue: Number(text.slice(0, -1)) / 100 }, { stringValue: "percent" }]
    : [int(text), { stringValue: "documents" }],
};
/** The names of the stages that a line can begin with. */
export const stageNames = Object.keys(stageReaders);

function one(text, root, read) {
  const reader = new ExpressionReader(text, root);
  const found = read(reader);
  if (!reader.isAtEnd) throw new Error(`"${reader.tokens[reader.at].text}" is not expected here`);
  return found;
}

/** The stages of a text. `root` is the name of the database. Throws an error with a sentence. */
export function pipelineStages(text, root) {
  if (text.trim().startsWith("[")) {
    let stages;
    try { stages = JSON.parse(text); } catch (error) { throw new Error(`the stages are not valid JSON: ${error.message}`); }
    if (!stages.every((stage) => typeof stage?.name === "string")) throw new Error('each stage needs a "name", such as {"name": "limit", "args": [{"integerValue": "10"}]}');
    return stages;
  }
  const stages = [];
  text.split("\n").forEach((line, index) => {
    const trimmed = line.replace(/^\s*\|?\s*/, "").trim();
    if (trimmed === "" || trimmed.startsWith("#") || trimmed.startsWith("//")) return;
    const [, name, rest] = /^(\S+)\s*([\s\S]*)$/.exec(trimmed);
    if (!Object.hasOwn(stageReaders, name)) throw new Error(`line ${index + 1}: ${name} is not a stage; use ${stageNames.slice(0, 8).join(", ")}, …`);
    try { stages.push({ name, args: stageReaders[name](rest.trim(), root) }); } catch (error) { throw new Error(`line ${index + 1}: ${error.message}`); }
  });
  if (stages.length === 0) throw new Error("the first stage says where the documents are: collection products");
  return stages;
}

/** Whether a pipeline writes. */
export const isWriting = (stages) => stages.some((stage) => stage.name === "update" || stage.name === "delete");
