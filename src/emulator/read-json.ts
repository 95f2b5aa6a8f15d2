import { TextDecoder } from "node:util";
import type { Call } from "./emulator-context.ts";

/** Nothing that the operations take is half as deep. */
const MAX_DEPTH = 32;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;

export type JsonBody =
  | { readonly value: unknown }
  /** The body is sent as something else than the media types of the operation, or compressed. */
  | { readonly mistake: "media type" }
  | { readonly mistake: "not JSON" | "too deep" };

/** What is told of a body that cannot be read, by what is wrong with it. */
export const BODY_MISTAKES = {
  "not JSON": "The body is not valid JSON.",
  "too deep": `The body must not be nested more than ${MAX_DEPTH} deep.`,
} as const;

/** Bytes that are no text of their charset are not JSON: with replacements they would ask for something else. */
function decode(body: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}

function isKnownCharset(charset: string): boolean {
  try {
    return new TextDecoder(charset).encoding !== "";
  } catch {
    return false;
  }
}

/** Level by level: a deep body would end a recursion. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((item) => typeof item === "object" && item !== null);
    if (containers.length > 0 && depth === MAX_DEPTH) return true;
    level = containers.flatMap((item): unknown[] => Object.values(item));
  }
  return false;
}

/** The JSON of a request's body, or what is wrong with it; `mediaTypes` matches what the operation takes. */
export function readJson(call: Call, mediaTypes: RegExp): JsonBody {
  const charset = CHARSET.exec(call.contentType)?.[1] ?? "utf-8";
  const isPlain = call.contentEncoding === "" || call.contentEncoding.toLowerCase() === "identity";
  if (!isPlain || !mediaTypes.test(call.contentType) || !isKnownCharset(charset))
    return { mistake: "media type" };
  const text = decode(call.body, charset);
  if (text === undefined) return { mistake: "not JSON" };
  try {
    const value: unknown = JSON.parse(text);
    return isTooDeep(value) ? { mistake: "too deep" } : { value };
  } catch {
    return { mistake: "not JSON" };
  }
}
