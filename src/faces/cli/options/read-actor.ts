import type { Config } from "#config/config.ts";
import { whoRuns } from "#lib/process.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

const MAX_NAME_CHARS = 100;

/**
 * Returns `--by`, or the user who runs the command, for the audit trail. It is no proof. An address in it is masked. The
 * audit trail of a service elsewhere gets the name of the key.
 */
export function readActor(
  read: FlagReader,
  by: string | undefined,
  { remote }: Pick<Config, "remote"> = { remote: null },
): string {
  if (remote !== null && by !== undefined)
    read.mistakes.push("--by cannot be used with another service's address: the key names who acts");
  return maskText(readText(read, "by", by, MAX_NAME_CHARS) ?? whoRuns());
}

/** Returns a short text of one line, or undefined if it is missing or wrong. */
export function readText(
  read: FlagReader,
  flag: string,
  value: string | undefined,
  maxChars: number,
): string | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const isLine = text !== "" && text.length <= maxChars && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text);
  return isLine ? text : read.wrong(flag, value, `1 to ${maxChars} characters on one line`);
}
