import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { z } from "zod";
import { SECOND_MS } from "#lib/units.ts";
import { describeInput, type Member } from "#operations/input-schema.ts";
import type { Operation } from "#operations/operation.ts";
import { findMistakes, type Mistake } from "#operations/refusal.ts";
import { parseTime } from "../edge/flag-reader.ts";
import { gather } from "../options/read-options.ts";

/** An option or an argument of a command, made from a member of the operation's input. */
export interface Flag {
  /** The name without dashes: `zone`. */
  readonly name: string;
  /** The place of the value in the input: `["matchers", "zone"]`. */
  readonly path: readonly string[];
  /** The value is an argument without a dash: a part of the path, or a list of numbers. */
  readonly isOperand: boolean;
  readonly isRequired: boolean;
  readonly member: Member;
}

/** Returns the flags of an operation. The members of an object become flags of their own. */
export function listFlags(operation: Pick<Operation, "input"> & Partial<Pick<Operation, "http">>): Flag[] {
  const inPath = new Set(operation.http?.[1].match(/(?<=:)\w+/g));
  return listMembers(describeInput(operation), [], inPath);
}

function listMembers(
  { properties = {}, required = [] }: Member,
  path: readonly string[],
  inPath: ReadonlySet<string>,
): Flag[] {
  return Object.entries(properties).flatMap(([name, { anyOf = [], ...own }]) => {
    // The command line cannot say null: the flag is left out.
    const member = { ...anyOf.find(({ type }) => type !== "null"), ...own };
    const ownPath = [...path, name];
    const isRequired = required.includes(name);
    if (member.properties !== undefined) return listMembers(member, ownPath, new Set());
    if (member.flag === null) return [];
    const typed = member.flag ?? name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [
      {
        name: typed,
        path: ownPath,
        isOperand: member.operand ?? inPath.has(name),
        isRequired,
        member,
      },
    ];
  });
}

/** Returns how the value is shown in the help; null for a flag without a value. */
function placeholderOf({ type, place, time, unit, items, isSwitch, enum: words }: Member): string | null {
  if (type === "boolean" || isSwitch === true) return null;
  if (place !== undefined) return place;
  if (time === true) return "time";
  if (unit !== undefined) return "duration";
  if (type === "array") return items?.type === "integer" ? "numbers" : isFree(items) ? "text" : "words";
  if (words !== undefined) return "word";
  return [type].flat().includes("integer") ? "number" : "text";
}

/** A free text may contain a comma, so the flag is repeated for several. */
function isFree(items: Member | undefined): boolean {
  return items?.type === "string" && items.enum === undefined;
}

/** Returns the help of a flag: what it is, its words and its default. */
export function describeFlag({ member, isRequired, isOperand }: Flag): string {
  const { description = "", items, enum: words = items?.enum } = member;
  const fallback = member.flagDefault ?? member.default;
  const sentence = description.replace(/\.$/, "");
  const isNamed =
    words === undefined || member.isSwitch === true || words.every((word) => sentence.includes(String(word)));
  const named = isNamed ? "" : `${sentence === "" ? "" : ": "}${words.join(", ")}`;
  const isSaid = (fallback ?? false) === false || member.isSwitch === true || sentence.includes("efault");
  const notes = [
    ...(isRequired && !isOperand ? ["required"] : []),
    ...(isSaid ? [] : [`default: ${[fallback].flat().map(String).join(",")}`]),
  ];
  return `${sentence}${named}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}`;
}

/** Adds the option of a flag to a command. A value that is repeated is gathered. */
export function addFlag(command: Command, flag: Flag, text = describeFlag(flag)): void {
  const place = placeholderOf(flag.member);
  if (place === null) command.option(`--${flag.name}`, text);
  else command.option(`--${flag.name} <${place}>`, text, gather);
}

/** Returns what was typed for a flag. `true`: the flag has no value. */
export type Typed = (flag: Flag) => readonly string[] | true | undefined;

/** Returns the value of a flag's option as commander has parsed it. */
export function typedOption(options: Readonly<Record<string, unknown>>, { name }: Flag): ReturnType<Typed> {
  return toList(options[name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]);
}

export function toList(value: unknown): readonly string[] | true | undefined {
  if (value === undefined || value === true) return value;
  return [value].flat().map(String);
}

export function isMany({ member }: Flag): boolean {
  return member.type === "array" && member.isText !== true;
}

/** Returns the input that the typed values say, without checking it. `nowMs` is where relative times begin. */
export function readInput(
  flags: readonly Flag[],
  typed: Typed,
  nowMs: number,
  mistakes: string[] = [],
): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const flag of flags) {
    const given =
      typed(flag) ?? (flag.member.flagDefault === undefined ? undefined : [flag.member.flagDefault]);
    if (given === undefined) continue;
    const last = flag.path.at(-1) ?? "";
    let place = input;
    for (const name of flag.path.slice(0, -1)) place = (place[name] ??= {}) as Record<string, unknown>;
    // A flag without a value says the opposite of the default.
    if (given === true) place[last] = flag.member.isSwitch === true ? "true" : flag.member.default !== true;
    else if (flag.member.lines === true) place[last] = readLines(flag, given, mistakes);
    else place[last] = toValue(flag.member, given, nowMs);
  }
  return input;
}

/** Returns the texts. `@FILE` stands for the lines of a file. */
function readLines({ name }: Flag, given: readonly string[], mistakes: string[]): string[] {
  return given.flatMap((text) => {
    if (!text.startsWith("@")) return [text];
    try {
      const lines = readFileSync(text.slice(1), "utf8").split("\n");
      return lines.map((line) => line.trim()).filter((line) => line !== "");
    } catch {
      mistakes.push(`--${name} ${JSON.stringify(text)} must name a file that can be read`);
      return [text];
    }
  });
}

function toValue(member: Member, given: readonly string[], nowMs: number): unknown {
  const [text = ""] = given.slice(-1);
  if (member.time === true) return toIsoTime(text, nowMs);
  if (member.unit !== undefined) return toDuration(text, member.unit);
  if (member.isText === true) return given.join(",");
  if (member.type === "array") {
    const parts = isFree(member.items) ? given : given.flatMap((one) => one.split(","));
    return parts.map((one) => toScalar(member.items ?? {}, one.trim()));
  }
  return toScalar(member, text);
}

/** A text that is no number stays a text, and the schema says what it must be. */
function toScalar({ type }: Member, text: string): unknown {
  const types = [type].flat();
  const isNumber = types.includes("integer") || types.includes("number");
  // People type the numbers of rows as lists show them: #3.
  if (isNumber && /^#?-?\d{1,15}(\.\d+)?$/.test(text)) return Number(text.replace("#", ""));
  if (types.includes("boolean") && /^(true|false)$/.test(text)) return text === "true";
  return text;
}

/** The operations read times with an offset; a person may write `-2h` or leave the offset out. */
function toIsoTime(text: string, nowMs: number): string {
  const at = parseTime(text, nowMs);
  // A small number is a mistake here, and epoch ms for the operations.
  if (at === null) return /^\d+$/.test(text) ? "" : text;
  return new Date(at).toISOString();
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

function toDuration(text: string, unit: "minutes" | "ms"): unknown {
  const [, count, letter = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const ms = Number(count) * (UNIT_SECONDS[letter] ?? Number.NaN) * SECOND_MS;
  if (Number.isNaN(ms)) return text;
  return unit === "ms" ? ms : ms / (60 * SECOND_MS);
}

/** Checks an input as it was typed. Adds its mistakes, and then returns undefined. */
export function checkInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  { flags, typed, mistakes }: { flags: readonly Flag[]; typed: Typed; mistakes: string[] },
): z.output<Schema> | undefined {
  const { success, data, error } = schema.safeParse(input);
  if (success) return data;
  const found = findMistakes(error, input, { isText: true });
  mistakes.push(...found.map((mistake) => wordMistake(mistake, flags, typed)));
  return undefined;
}

/** Words a mistake with the flag instead of the member, and with the value as it was typed: `--limit "0" must be ...`. */
export function wordMistake({ field, value, rule }: Mistake, flags: readonly Flag[], typed: Typed): string {
  const path = field.replaceAll(/\[\d+\]/g, "");
  const flag = flags.find((one) => one.path.join(".") === path);
  const below = flags.filter((one) => one.path.join(".").startsWith(`${path}.`)).map(nameOf);
  const name = flag === undefined ? (below.length > 0 ? below.join(", ") : `--${path}`) : nameOf(flag);
  const isDuration = flag?.member.unit !== undefined;
  const last = flag === undefined ? undefined : [typed(flag)].flat().at(-1);
  const isConverted = isDuration || flag?.member.time === true;
  const given = isConverted && value !== undefined && typeof last === "string" ? JSON.stringify(last) : value;
  const shown = given === undefined || given.startsWith('"') ? given : `"${given}"`;
  const isNumberless = isDuration && value?.startsWith('"') === true;
  const said = isNumberless ? "must be a duration such as 30m, 2h or 7d" : rule;
  // Members with a name of two words have a flag of another name.
  const words = said.replaceAll(/\b[a-z]+[A-Z]\w*/g, (member) => {
    const meant = flags.find((one) => one.path.at(-1) === member);
    return meant === undefined ? member : nameOf(meant);
  });
  return `${name}${shown === undefined ? "" : ` ${shown}`} ${words}`;
}

function nameOf({ name, isOperand }: Flag): string {
  return isOperand ? `<${name}>` : `--${name}`;
}
