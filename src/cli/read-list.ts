import type { FlagReader } from "./edge/flag-reader.ts";

/** Gathers an option that may be given more than once. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Values separated by commas or given one by one, each of `allowed`; undefined where the option was left out. */
export function readWords<Word extends string>(
  read: FlagReader,
  flag: string,
  values: readonly string[] | undefined,
  allowed: readonly Word[],
): Word[] | undefined {
  const words = split(values);
  const isAllowed = (word: string): word is Word => (allowed as readonly string[]).includes(word);
  for (const word of words ?? [])
    if (!isAllowed(word)) read.wrong(flag, word, `one of ${allowed.join(", ")}`);
  return words?.filter(isAllowed);
}

/** The same of shield zones. */
export function readZones(
  read: FlagReader,
  values: readonly string[] | undefined,
  flag = "zone",
): number[] | undefined {
  return split(values)?.flatMap((value) => read.id(flag, value, "a shield zone's number") ?? []);
}

function split(values: readonly string[] | undefined): string[] | undefined {
  if (values === undefined) return undefined;
  return [...new Set(values.flatMap((value) => value.split(",").map((part) => part.trim())))];
}
