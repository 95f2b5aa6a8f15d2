import { createHmac, timingSafeEqual } from "node:crypto";
import { Refusal } from "./refusal.ts";

const VERSION = "c1";
const TAG_BYTES = 16;

export type Position = readonly (string | number | null)[];
export type PageCursors = ReturnType<typeof createPageCursors>;

/**
 * Cursors of keyset paging: the end of the page before, signed, so that a client cannot ask for a position that no list
 * returned. Replicas share `secret`. `list` names the list, with everything that its order depends on (`alerts:101`); a
 * cursor of one list is not valid for another.
 */
export function createPageCursors(secret: Buffer) {
  const tagOf = (list: string, payload: string) =>
    createHmac("sha256", secret)
      .update(JSON.stringify([VERSION, list, payload]))
      .digest()
      .subarray(0, TAG_BYTES);

  return {
    sign(list: string, position: Position): string {
      const payload = Buffer.from(JSON.stringify(position)).toString("base64url");
      return `${VERSION}.${payload}.${tagOf(list, payload).toString("base64url")}`;
    },
    /** Null for anything but a cursor of this list. */
    read(list: string, cursor: string): Position | null {
      const [version, payload, tag, ...more] = cursor.split(".");
      if (version !== VERSION || payload === undefined || tag === undefined || more.length > 0) return null;
      const given = Buffer.from(tag, "base64url");
      const expected = tagOf(list, payload);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
      // Several spellings decode to the same bytes; only the one that was issued is valid.
      if (expected.toString("base64url") !== tag) return null;
      return JSON.parse(Buffer.from(payload, "base64url").toString()) as Position;
    },
    /**
     * The same for a native list's `after`.
     * @throws {Refusal} 400 for anything but a cursor of this list.
     */
    readAfter(list: string, after: string | undefined): Position | null {
      if (after === undefined) return null;
      const position = this.read(list, after);
      if (position !== null) return position;
      const rule =
        "must be the `next` of the previous page of this list, and all other parameters must be unchanged";
      throw new Refusal(400, { slug: "invalid-cursor", mistakes: [{ field: "after", rule }] });
    },
  };
}
