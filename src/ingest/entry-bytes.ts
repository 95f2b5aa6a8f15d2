import { sliceEntries } from "../model/slice-entries.ts";

/** The entries of a page as bytes; written again where the answer's form does not allow to cut them out. */
export function entryBytes(body: Buffer, member: string, entries: readonly unknown[]): readonly Buffer[] {
  const slices = sliceEntries(body, member);
  if (slices?.length === entries.length) return slices;
  return entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
}
