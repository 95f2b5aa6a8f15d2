/** A text of the operator's own, which replaces the text of a channel's messages. */

import { createRequire } from "node:module";
import type { Liquid } from "liquidjs";
import { z } from "zod";
import { closestName, cutText, toLine } from "#lib/text.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { formatTime } from "./describe-alert.ts";
import { type Line, toDocument, type WrittenMessage } from "./document.ts";

export const MAX_TEMPLATE_CHARS = 4_000;
/** Escaped for any chat, so many characters fit into a message besides its title and links. */
const MAX_TEXT_CHARS = 2_000;
const MAX_LINE_CHARS = 400;
const MAX_LINES = 40;
/** Milliseconds, many because the machine may be busy, and bytes as liquidjs counts them. */
const LIMITS = { parseLimit: MAX_TEMPLATE_CHARS, renderLimit: 1_000, memoryLimit: 1_000_000 };

/** Neither reads a file, prints a value unescaped, knows the time nor draws lots. */
const TAGS = ["assign", "capture", "case", "comment", "if", "unless", "for", "break", "continue"];
const FILTERS = [
  "abs append at_least at_most capitalize ceil compact default divided_by downcase first floor join last map",
  "minus modulo plus prepend remove replace reverse round size slice sort split strip sum times truncate",
  "truncatewords uniq upcase where",
].flatMap((names) => names.split(" "));

/** Private-use characters, which no harmless line contains, around each value in a rendered text. */
const [START, END] = ["\ue000", "\ue001"];

let engine: Liquid | undefined;

/** Returns the engine, which is loaded for the first template: most configurations have none. */
function openEngine(): Liquid {
  if (engine !== undefined) return engine;
  const library: typeof import("liquidjs") = createRequire(import.meta.url)("liquidjs");
  const options = {
    ownPropertyOnly: true,
    strictFilters: true,
    templates: {},
    outputEscape: wrap,
    ...LIMITS,
  };
  engine = new library.Liquid(options);
  for (const tag of Object.keys(engine.tags)) if (!TAGS.includes(tag)) delete engine.tags[tag];
  for (const filter of Object.keys(engine.filters))
    if (!FILTERS.includes(filter)) delete engine.filters[filter];
  engine.registerFilter("time", (atMs: unknown) => (typeof atMs === "number" ? formatTime(atMs) : ""));
  return engine;
}

function show(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(show).join(", ");
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Marks a value, line by line, so that a channel escapes it as every other hostile text. */
function wrap(value: unknown): string {
  const lines = show(value)
    .slice(0, MAX_TEXT_CHARS)
    .split(/[\n\r\u0085\u2028\u2029]+/);
  return lines.map((line) => `${START}${toLine(line, MAX_LINE_CHARS)}${END}`).join("\n");
}

const values = alertMessage.extend({
  /** `CRITICAL firing`, `Advice` or `Resolved`. */
  statusText: z.string(),
  /** `zone 101 · rule 942100 SQL injection`. */
  subject: z.string(),
});

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodReadonly
    ? unwrap(schema.unwrap() as z.ZodType)
    : schema;
}

/** Returns the values that a template may use, such as `verdict.title` and `top.ips[].count`. */
export function listTemplateValues(of: z.ZodType = values, at = ""): string[] {
  const schema = unwrap(of);
  if (schema instanceof z.ZodArray) return listTemplateValues(schema.element as z.ZodType, `${at}[]`);
  if (!(schema instanceof z.ZodObject)) return [at];
  return Object.entries(schema.shape).flatMap(([name, inner]) =>
    listTemplateValues(inner as z.ZodType, at === "" ? name : `${at}.${name}`),
  );
}

/** Returns the first name on this path that no message has; null if the path exists. */
function findUnknown(of: z.ZodType, [name, ...rest]: readonly unknown[]): string | null {
  if (name === undefined) return null;
  const schema = unwrap(of);
  if (typeof name !== "string" || ["size", "first", "last"].includes(name))
    return schema instanceof z.ZodArray ? findUnknown(schema.element as z.ZodType, rest) : null;
  if (schema instanceof z.ZodRecord) return null;
  const shape: Readonly<Record<string, unknown>> = schema instanceof z.ZodObject ? schema.shape : {};
  const inner = Object.hasOwn(shape, name) ? shape[name] : undefined;
  if (inner !== undefined) return findUnknown(inner as z.ZodType, rest);
  const meant = closestName(name, Object.keys(shape));
  return `${name}${meant === null ? "" : `: did you mean ${meant}?`}`;
}

const describe = (thrown: unknown) => toLine(thrown instanceof Error ? thrown.message : String(thrown), 200);

/** Returns what is wrong with a template, with its line; null if it can be rendered. */
export function findTemplateFault(text: string): string | null {
  try {
    const liquid = openEngine();
    const used = Object.values(liquid.analyzeSync(liquid.parse(text)).globals).flat();
    for (const { segments, location } of used) {
      const unknown = findUnknown(values, segments);
      if (unknown !== null)
        return `no message has ${toLine(unknown, 100)}, line:${location.row}, col:${location.col}`;
    }
    return null;
  } catch (thrown) {
    return describe(thrown);
  }
}

/** Splits a rendered text into lines of the operator's words and of values. */
function toLines(rendered: string): Line[] {
  const lines = cutText(rendered.trim(), MAX_TEXT_CHARS).split("\n").slice(0, MAX_LINES);
  return lines.map((line) =>
    [...cutText(line, MAX_LINE_CHARS).matchAll(/\ue000([^\ue001]*)\ue001?|[^\ue000]+/g)].map(
      ([own, value]) =>
        value === undefined ? { as: "own", text: own.replaceAll(END, "") } : { as: "text", text: value },
    ),
  );
}

/**
 * Returns the message with the text of the template, and why the template could not be rendered: then the message is as
 * without it. Digests, which list other alerts, have no template.
 */
export function applyTemplate(
  template: string | undefined,
  message: AlertMessage,
): { readonly message: WrittenMessage; readonly fault: string | null } {
  if (template === undefined || message.digest !== undefined || message.kind === "weekly")
    return { message, fault: null };
  try {
    const liquid = openEngine();
    const { statusText, subject } = toDocument(message, "whole");
    const rendered = liquid.renderSync(liquid.parse(template), { ...message, statusText, subject });
    const lines = toLines(String(rendered));
    const isEmpty = lines.every((line) => line.every(({ text }) => text.trim() === ""));
    return isEmpty
      ? { message, fault: "its text is empty" }
      : { message: { ...message, lines }, fault: null };
  } catch (thrown) {
    return { message, fault: describe(thrown) };
  }
}
