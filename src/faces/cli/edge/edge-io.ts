/** The streams of a command, and how JSON and text are written to them. */
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "#lib/clock.ts";
import { escapeLines, escapeUnits } from "#lib/text.ts";

/** Streams, clock and exit of a command. Tests pass their own. */
export interface EdgeIo {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  readonly clock: Clock;
  /** Ends the process at once, after the help or after a command line that cannot be parsed. */
  exit(code: number): void;
  /** Sets the exit code with which the process will end. */
  setExitCode(code: number): void;
}

export function createProcessIo(): EdgeIo {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    exit: (code) => process.exit(code),
    setExitCode: (code) => {
      process.exitCode = code;
    },
  };
}

/** Thrown if the reader of the output is gone (`| head`). The command then ends silently. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

/** Writes at the reader's pace. Throws OutputClosedError once the reader is gone. */
export async function writeOut(out: Writable, chunk: string | Uint8Array): Promise<void> {
  if (out.destroyed || out.errored !== null) throw new OutputClosedError();
  if (out.write(chunk)) return;
  try {
    await once(out, "drain");
  } catch (cause) {
    throw new OutputClosedError("the output was closed", { cause });
  }
}

/** Characters that JSON does not escape but that a terminal may act on. Escaping them does not change the value. */
const UNSAFE = /[\p{Cf}\p{Zl}\p{Zp}\u007f-\u009f]/gu;

function toJson(value: unknown, indent?: number): string {
  return stringify(value, indent).replace(UNSAFE, escapeUnits);
}

/** Writes one indented JSON document. */
export async function writeJson(out: Writable, value: unknown): Promise<void> {
  await writeOut(out, `${toJson(value, 2)}\n`);
}

/** Writes one JSON document on one line, for NDJSON. */
export async function writeJsonLine(out: Writable, value: unknown): Promise<void> {
  await writeOut(out, `${toJson(value)}\n`);
}

/**
 * Writes several pages as one object: first the joined list called `member`, streamed, then the other members of the last
 * page. Writes nothing before the first page arrives. A later failure leaves the document unfinished, so that no reader
 * mistakes a part for the whole.
 */
export async function writeJoinedPages(
  out: Writable,
  member: string,
  pages: AsyncIterable<Record<string, unknown>>,
): Promise<void> {
  let rest: Record<string, unknown> = {};
  let written = 0;
  let isOpen = false;
  for await (const page of pages) {
    if (!isOpen) await writeOut(out, `{\n  ${toJson(member)}: [`);
    isOpen = true;
    const { [member]: list, ...others } = page;
    rest = others;
    for (const item of Array.isArray(list) ? list : []) {
      await writeOut(out, `${written++ === 0 ? "" : ","}\n    ${toJson(item)}`);
    }
  }
  const members = Object.entries(rest).map(([name, value]) => `,\n  ${toJson(name)}: ${toJson(value)}`);
  await writeOut(out, `${written === 0 ? "" : "\n  "}]${members.join("")}\n}\n`);
}

/** Writes the bytes unchanged into a pipe or a file. On a terminal, control characters are escaped. */
export async function writeText(
  out: EdgeIo["stdout"],
  chunks: AsyncIterable<Buffer | string> | Iterable<string>,
): Promise<void> {
  if (out.isTTY !== true) {
    for await (const chunk of chunks) await writeOut(out, chunk);
    return;
  }
  const decoder = new TextDecoder();
  for await (const chunk of chunks) {
    const text = typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    await writeOut(out, escapeLines(text));
  }
  await writeOut(out, escapeLines(decoder.decode()));
}

type Work = { readonly text: string } | { readonly value: unknown };

/** Pushes the parts of a list or object onto the stack, the last part first. */
function unfold(work: Work[], value: object): void {
  const isList = Array.isArray(value);
  const members: [name: string, item: unknown][] = isList
    ? value.map((item: unknown) => ["", item ?? null])
    : Object.entries(value).filter(([, item]) => item !== undefined);
  work.push({ text: isList ? "]" : "}" });
  for (let at = members.length - 1; at >= 0; at--) {
    const [name, item] = members[at] ?? ["", null];
    const comma = at === 0 ? "" : ",";
    work.push({ value: item }, { text: isList ? comma : `${comma}${JSON.stringify(name)}:` });
  }
  work.push({ text: isList ? "[" : "{" });
}

/** Returns JSON on one line without recursion, which fails at a few thousand levels. For values that came from JSON. */
function stringifyDeep(root: unknown): string {
  const parts: string[] = [];
  const work: Work[] = [{ value: root }];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if ("text" in next) parts.push(next.text);
    else if (typeof next.value === "object" && next.value !== null) unfold(work, next.value);
    else parts.push(JSON.stringify(next.value) ?? "null");
  }
  return parts.join("");
}

/**
 * Returns a value as JSON. An event may be nested deeper than JSON.stringify supports; such a value is returned on one
 * line.
 */
export function stringify(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent) ?? "null";
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return stringifyDeep(value);
  }
}
