// Another language computes the digests: every golden's raw JSON, canonicalised here by RFC 8785 and hashed by
// Node, must give the published bytes and the published digest. Usage: node goldens.mjs DIRECTORY
//
// Vectors with a rule are text that every strict reader refuses. JSON.parse is no strict reader (it takes duplicate
// names, half surrogates and rounded integers), so those are left to the implementations themselves.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

// ECMAScript's own number and string printing, and its default sort by UTF-16 units, are what RFC 8785 asks for.
function canonical(value) {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join(",")}]`;
  }
  if (value !== null && typeof value === "object") {
    const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value);
}

// What a digest covers is the document or, for content-addressed ones, the document without some of its fields.
// Which ones the published bytes tell; their values must come from the raw text.
function covered(document, published) {
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  if (!isObject(document) || !isObject(published)) {
    return document;
  }
  return Object.fromEntries(Object.entries(document).filter(([key]) => Object.hasOwn(published, key)));
}

function check(golden) {
  const published = Buffer.from(golden.canonicalBytesHex, "hex");
  const bytes = Buffer.from(canonical(covered(JSON.parse(golden.raw), JSON.parse(published.toString("utf8")))), "utf8");
  if (!bytes.equals(published)) {
    return `canonical bytes differ: ${bytes.toString("utf8")}`;
  }
  const digest = createHash("sha256").update(bytes).digest("hex");
  return digest === golden.digest ? null : `digest differs: ${digest}`;
}

const directory = process.argv[2];
const files = readdirSync(directory, { recursive: true }).filter((name) => name.endsWith(".json")).sort();
const vectors = files
  .map((name) => [name, JSON.parse(readFileSync(join(directory, name), "utf8"))])
  .filter(([, golden]) => golden.rule === undefined);
const problems = vectors.map(([name, golden]) => [name, check(golden)]).filter(([, problem]) => problem !== null);
for (const [name, problem] of problems) {
  console.error(`${name}: ${problem}`);
}
if (vectors.length === 0) {
  console.error(`no goldens under ${directory}`);
}
console.log(`node reproduced ${vectors.length - problems.length} of ${vectors.length} goldens`);
process.exitCode = problems.length > 0 || vectors.length === 0 ? 1 : 0;
