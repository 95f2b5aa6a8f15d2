import { TextDecoder } from "node:util";
import type { Call } from "./emulator-context.ts";

/** Maximum depth of a body, more than twice the depth of any operation's body. */
const MAX_DEPTH = 32;
const CHARSET = /;\s*charset\s*=\s*"?([^\s";]+)/i;

export type JsonBody =
  | { readonly value: unknown }
  /** The body has a media type that the operation does not accept, or is compressed. */
  | { readonly mistake: "media type" }
  | { readonly mistake: "not JSON" | "too deep" };

/** Error texts for a body that cannot be read, by mistake. */
export const BODY_MISTAKES = {
  "not JSON": "The body is not valid JSON.",
  "too deep": `The body must not be nested more than ${MAX_DEPTH} deep.`,
} as const;

/**
 * Decodes a body. Bytes that are no text of their charset are refused, because replacement characters would change
 * the request.
 */
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

/** Returns whether a value is too deep. Works level by level, because recursion would fail on a deep body. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((item) => typeof item === "object" && item !== null);
    if (containers.length > 0 && depth === MAX_DEPTH) return true;
    level = containers.flatMap((item): unknown[] => Object.values(item));
  }
  return false;
}

/** Returns the JSON of a request's body, or its mistake. `mediaTypes` matches the media types of the operation. */
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
