import type { Span } from "#model/horizon.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

export interface SpanFlags {
  readonly zone?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Reads `--from` and `--to` and checks their order. A missing flag without a fallback is a mistake. */
export function readSpan(
  read: FlagReader,
  flags: SpanFlags,
  fallback: { readonly from?: number; readonly to?: number } = {},
): Span {
  const from =
    flags.from === undefined
      ? (fallback.from ?? read.time("from", undefined))
      : read.time("from", flags.from);
  const to = flags.to === undefined ? (fallback.to ?? read.time("to", undefined)) : read.time("to", flags.to);
  if (from === undefined || to === undefined) return { from: 0, to: 0 };
  if (to <= from)
    read.wrong(flags.to === undefined ? "from" : "to", flags.to ?? flags.from, rule(flags, from, to));
  return { from, to };
}

function rule(flags: SpanFlags, from: number, to: number): string {
  return flags.to === undefined
    ? `before the end of the span, ${new Date(to).toISOString()}`
    : `after the start of the span, ${new Date(from).toISOString()}`;
}

/** Reads `--zone`. Returns undefined if the flag is missing or wrong. */
export function readZone(read: FlagReader, flags: SpanFlags, isRequired: boolean): number | undefined {
  if (flags.zone === undefined && !isRequired) return undefined;
  return read.id("zone", flags.zone, "a shield zone's number");
}
