import { canMatchRules } from "#stages/alerting/silence.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

const MAX_RULE_CHARS = 255;
const RULE_PATTERN = "a rule's id, or a family such as 942*; a * may only be at the end";

/** Collects the values of an option that may be repeated. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Reads words of `allowed`, separated by commas or given by repeating the option. Returns undefined without the option. */
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

/** Reads the numbers of shield zones in the same way. */
export function readZones(
  read: FlagReader,
  values: readonly string[] | undefined,
  flag = "zone",
): number[] | undefined {
  return split(values)?.flatMap((value) => read.id(flag, value, "a shield zone's number") ?? []);
}

/** Reads a rule's id or a family such as `942*`. Returns undefined if the text can never match. */
export function readRulePattern(read: FlagReader, value: string): string | undefined {
  const isRead = value !== "" && value.length <= MAX_RULE_CHARS && canMatchRules(value);
  return isRead ? value : read.wrong("rule", value.slice(0, 40), RULE_PATTERN);
}

function split(values: readonly string[] | undefined): string[] | undefined {
  if (values === undefined) return undefined;
  return [...new Set(values.flatMap((value) => value.split(",").map((part) => part.trim())))];
}
