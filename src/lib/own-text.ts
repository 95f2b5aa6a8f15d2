/** The length from which on V8 makes a part of a text a reference to the whole. */
const REFERENCE_CHARS = 13;

/** Returns a text that does not keep in memory the larger text of which it is a part. */
export function ownText(text: string): string {
  return text.length < REFERENCE_CHARS ? text : Buffer.from(text).toString();
}
