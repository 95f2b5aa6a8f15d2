import { EVENT_FILE_COLUMNS, storedColumns } from "#model/archive-layout.ts";

/** Number and sum of the events of one rule in one hour. Two sets of events with equal sums are the same events. */
export interface EventSum {
  /** 0 to 23. */
  readonly hour: number;
  /** '' if the rule is unknown or empty, as in rule_buckets. */
  readonly ruleId: string;
  readonly events: number;
  readonly sum: bigint;
}

/** The same function in both engines. `bytes` is the length of a text in bytes. */
const ENGINES = {
  postgres: {
    ms: "(extract(epoch from occurred_at) * 1000)::bigint",
    bytes: "octet_length",
    first60Bits: (hash: string) => `('x' || left(${hash}, 15))::bit(60)::bigint`,
  },
  duckdb: {
    ms: "epoch_ms(occurred_at)",
    bytes: "strlen",
    first60Bits: (hash: string) => `('0x' || left(${hash}, 15))::ubigint`,
  },
} as const;

/**
 * Returns SQL for the first 60 bits of the MD5 of an event: of the stored columns of a file's version, or of some of them.
 * Every value is written with its length, and null differs from every text, so that no two events are written alike. The
 * sum over events does not depend on their order.
 */
export function rowSumIn(
  engine: keyof typeof ENGINES,
  format?: number,
  columns: readonly string[] = storedColumns(format),
): string {
  const { ms, bytes, first60Bits } = ENGINES[engine];
  const values = columns.map((name) => {
    if (name === "occurred_at") return `${ms}::varchar`;
    const { type, isNullable = false } = EVENT_FILE_COLUMNS.find((column) => column.name === name) ?? {};
    if (type === "VARCHAR") return `coalesce(${bytes}(${name})::varchar || ':' || ${name}, '-')`;
    return isNullable ? `coalesce(${name}::varchar, '-')` : `${name}::varchar`;
  });
  return first60Bits(`md5(${values.join(" || '|' || ")})`);
}
