import { sliceEntries } from "#model/slice-entries.ts";

/** Returns the entries of a page as bytes. Serialises them again if they cannot be cut out of the answer. */
export function entryBytes(body: Buffer, member: string, entries: readonly unknown[]): readonly Buffer[] {
  const slices = sliceEntries(body, member);
  if (slices?.length === entries.length) return slices;
  return entries.map((entry) => Buffer.from(JSON.stringify(entry) ?? "null"));
}
