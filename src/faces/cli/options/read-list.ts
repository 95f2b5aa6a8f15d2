import type { FlagReader } from "../edge/flag-reader.ts";

/** Collects the values of an option that may be repeated. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Reads the numbers of shield zones, separated by commas or given by repeating the option. Returns undefined without the option. */
export function readZones(
  read: FlagReader,
  values: readonly string[] | undefined,
  flag = "zone",
): number[] | undefined {
  if (values === undefined) return undefined;
  const texts = new Set(values.flatMap((value) => value.split(",").map((part) => part.trim())));
  return [...texts].flatMap((text) => read.id(flag, text, "a shield zone's number") ?? []);
}
