import type { Answer } from "./support.ts";

const TOKENS = /"(continuationToken|startToken)":"[^"]+"/g;
/** The apostrophe before what a spreadsheet would run. */
const GUARD = /(^|[,\n]"?)'(?=[=+\-@\t\r\n])/g;

/** Controls, as exports write them. */
const ESCAPED = /\\u([0-9a-f]{4})/g;

/** Raw or as JSON writes them; every lone surrogate of the emulator's is this one. */
const UNSTORABLE = /\0|\\u0000|\\ud83d/g;

/**
 * An answer but for what may differ: the text of tokens; in CSV the guards against formulas and controls; and where
 * texts are compared or shown as they are stored (exports, groups), what Postgres cannot hold.
 */
export function comparable({ status, type, text }: Answer, name: string): string {
  const isStored = name.startsWith("export") || name.includes("grouped");
  const shown = isStored ? text.replaceAll(UNSTORABLE, "\uFFFD") : text;
  const unguarded = name.startsWith("export") ? shown.replaceAll(GUARD, "$1") : shown;
  return `${status} ${type}\n${unguarded.replaceAll(TOKENS, '"$1":"<token>"')}`;
}

/** An export as docs/api.md tells readers to read it. */
export function readBack(answer: Answer): Answer {
  if (answer.type?.startsWith("text/csv") !== true) return answer;
  const text = answer.text.replaceAll(ESCAPED, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
  return { ...answer, text };
}

/** Where two texts part, short enough to read. */
export function difference(name: string, ours: string, theirs: string): string[] {
  if (ours === theirs) return [];
  let at = 0;
  while (ours[at] === theirs[at]) at++;
  const near = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 140));
  return [`${name}: at ${at}\n  ours   ${near(ours)}\n  theirs ${near(theirs)}`];
}
