import type { Config } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { checkWindow } from "#stages/archive/check-window.ts";
import { toNativeFilter, type WrittenFilter } from "#stages/archive/query/filter-text.ts";
import { planSearch, type SearchPlan } from "#stages/archive/query/plan-search.ts";
import { readSearch } from "#stages/archive/query/read-search.ts";
import type { Mistakes } from "#stages/archive/query/search.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { listUnread, type WindowFlags } from "../edge/read-search.ts";

/**
 * Returns the plan of a request that `readRequest` read from these flags, or undefined after a mistake. In a flag, `not-`
 * before an operator excludes.
 */
export function planAsked(
  read: FlagReader,
  request: unknown,
  { kind, flags }: { readonly kind: "search" | "export"; readonly flags: WindowFlags },
): SearchPlan | undefined {
  if (request === undefined) return undefined;
  const isBody = flags.body !== undefined;
  const result = readSearch(toNativeRequest(request, flags), kind, "native");
  if ("search" in result) return planSearch(result.search);
  const unread = listUnread(flags, request);
  for (const [member, rules] of Object.entries(result.mistakes))
    if (!unread.includes(member))
      read.mistakes.push(
        ...rules.map((rule) => (isBody ? rule : rule.replace(`${member} `, `${toFlag(member)} `))),
      );
  return undefined;
}

/** Returns a request that `readRequest` read from these flags as the service's own API takes it. */
export function toNativeRequest(request: unknown, { body }: WindowFlags): unknown {
  return body === undefined ? withNot(request as FlagRequest) : request;
}

interface FlagRequest {
  readonly filters?: readonly WrittenFilter[];
}

function withNot({ filters = [], ...request }: FlagRequest): object {
  return { ...request, filters: filters.map(toNativeFilter) };
}

/** Returns the flag of a member such as `filters[0].value`. */
function toFlag(member: string): string {
  const name = /^\w+/.exec(member)?.[0] ?? member;
  return `--${name.replace(/s$/, "").replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws {UsageError} for a window that ends in the future or before the retention. */
export function requireKept(plan: SearchPlan, { retention }: Pick<Config, "retention">, nowMs: number): void {
  const mistakes = checkWindow(plan, { nowMs, retentionDays: retention.eventDays });
  if (mistakes !== null) throw new UsageError(listMistakes(mistakes));
}

function listMistakes(mistakes: Mistakes): string[] {
  return Object.values(mistakes).flat();
}
