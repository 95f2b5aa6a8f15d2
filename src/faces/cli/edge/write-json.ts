import type { Writable } from "node:stream";
import { escapeUnits } from "#lib/text.ts";
import { writeOut } from "./edge-io.ts";
import { stringify } from "./stringify.ts";

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
